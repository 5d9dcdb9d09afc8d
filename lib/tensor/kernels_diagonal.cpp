#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/kernels_diagonal.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "tensor/kernels_diagonal.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

/// Coefficients of 2^f = 1 + f p(f) on |f| <= 1/2, for float (error 5e-9) and double (9e-18).
template <typename T>
struct PowerOfTwo;

template <>
struct PowerOfTwo<float> {
  static constexpr double kMagic = 0x1.8p23 + 127;  // adding it rounds to an integer, with the exponent's bias
  static constexpr double kLowest = -126.5;         // below, the result is 0
  static constexpr double kP[] = {0.0001545316294512069, 0.0013390863364671234, 0.009618082557277852,
                                  0.05550357114219078,   0.24022650760568126,   0.6931471880262288};
};

template <>
struct PowerOfTwo<double> {
  static constexpr double kMagic = 0x1.8p52 + 1023;
  static constexpr double kLowest = -1022.5;
  static constexpr double kP[] = {4.454960598186519e-10, 7.072585949269224e-09, 1.0178062445845774e-07,
                                  1.321544258792169e-06, 1.525273382983612e-05, 0.0001540353044173605,
                                  0.0013333558146416936, 0.009618129107606888,  0.0555041086648216,
                                  0.24022650695910097,   0.6931471805599453};
};

/// 2^(a b) for a b <= 0 or NaN; 1 where a b = 0, 0 where it underflows.
HWY_INLINE V exp2_of_product(V a, V b) {
  using P = PowerOfTwo<Real>;
  const D d;
  const V magic = constant(P::kMagic);
  const V shifted = hn::MulAdd(a, b, magic);
  const V scale =
      hn::BitCast(d, hn::ShiftLeft<ExpConstants<Real>::kMantissaBits>(hn::BitCast(hn::RebindToUnsigned<D>(), shifted)));
  const V n = hn::Sub(shifted, magic);
  const V f = hn::MulSub(a, b, n);
  V p = constant(P::kP[0]);
  for (size_t i = 1; i < sizeof(P::kP) / sizeof(P::kP[0]); ++i) p = hn::MulAdd(p, f, constant(P::kP[i]));
  p = hn::MulAdd(p, f, constant(1));
  return hn::IfThenZeroElse(hn::Lt(n, constant(P::kLowest)), hn::Mul(p, scale));
}

/// Calls fn(first channel, number of vectors as a type) for groups of four vectors, then single ones.
template <typename F>
HWY_INLINE void for_groups(Index width, F&& fn) {
  Index at = 0;
  for (; at + 4 * lanes() <= width; at += 4 * lanes()) fn(at, std::integral_constant<int, 4>());
  for (; at < width; at += lanes()) fn(at, std::integral_constant<int, 1>());
}

template <int kCount>
HWY_INLINE void forward_group(const DiagonalTile& tile, Index at, Real* h, Real* y) {
  const D d;
  const Index width = lanes();
  for (Index t = 0; t < tile.tokens; ++t) {
    const Index row = t * tile.stride + at;
    V sum[kCount], delta[kCount], x[kCount];
    for (int v = 0; v < kCount; ++v) {
      const V u = hn::LoadU(d, tile.u + row + v * width);
      delta[v] = hn::LoadU(d, tile.delta + row + v * width);
      x[v] = hn::Mul(delta[v], u);
      sum[v] = hn::Mul(hn::LoadU(d, tile.skip + at + v * width), u);
    }
    for (Index n = 0; n < tile.states; ++n) {
      const V b = hn::Set(d, tile.b[t * tile.states + n]);
      const V c = hn::Set(d, tile.c[t * tile.states + n]);
      const Real* const rate = tile.rates + n * kDiagonalTile + at;
      Real* const held = h + n * kDiagonalTile + at;
      for (int v = 0; v < kCount; ++v) {
        const V decay = exp2_of_product(delta[v], hn::LoadU(d, rate + v * width));
        const V next = hn::MulAdd(decay, hn::LoadU(d, held + v * width), hn::Mul(x[v], b));
        hn::StoreU(next, d, held + v * width);
        sum[v] = hn::MulAdd(next, c, sum[v]);
      }
    }
    for (int v = 0; v < kCount; ++v) hn::StoreU(sum[v], d, y + row + v * width);
  }
}

void diagonal_forward(const DiagonalTile& tile, Real* h, Real* y) {
  for_groups(tile.width, [&](Index at, auto count) HWY_ATTR { forward_group<count()>(tile, at, h, y); });
}

template <int kCount>
HWY_INLINE void history_group(const DiagonalTile& tile, Index at, Real* history, Real* decays) {
  const D d;
  const Index width = lanes(), block = tile.states * kDiagonalTile;
  for (Index t = 0; t < tile.tokens; ++t) {
    const Index row = t * tile.stride + at;
    V delta[kCount], x[kCount];
    for (int v = 0; v < kCount; ++v) {
      delta[v] = hn::LoadU(d, tile.delta + row + v * width);
      x[v] = hn::Mul(delta[v], hn::LoadU(d, tile.u + row + v * width));
    }
    for (Index n = 0; n < tile.states; ++n) {
      const V b = hn::Set(d, tile.b[t * tile.states + n]);
      const Real* const rate = tile.rates + n * kDiagonalTile + at;
      const Index cell = t * block + n * kDiagonalTile + at;
      for (int v = 0; v < kCount; ++v) {
        const V decay = exp2_of_product(delta[v], hn::LoadU(d, rate + v * width));
        const V next = hn::MulAdd(decay, hn::LoadU(d, history + cell + v * width), hn::Mul(x[v], b));
        hn::StoreU(decay, d, decays + cell + v * width);
        hn::StoreU(next, d, history + cell + block + v * width);
      }
    }
  }
}

void diagonal_history(const DiagonalTile& tile, Real* history, Real* decays) {
  for_groups(tile.width, [&](Index at, auto count) HWY_ATTR { history_group<count()>(tile, at, history, decays); });
}

/// With x = delta u and p = e^{delta A} dh h_{t-1}:  dA += p delta,  dx = sum_n dh B,  du = delta dx + D dy,
/// ddelta = u dx + sum_n p A. The products dh x and dy h_t, whose sums over channels are dB and dC, are summed over the
/// vectors alone, into [tokens,N] vectors each.
template <int kCount>
HWY_INLINE void backward_group(const DiagonalTile& tile, Index at, const Real* history, const Real* decays,
                               const Real* dys, const DiagonalGradients& g, Real* db, Real* dc) {
  const D d;
  const Index width = lanes(), block = tile.states * kDiagonalTile;
  for (Index t = tile.tokens - 1; t >= 0; --t) {
    const Index row = t * tile.stride + at;
    V dx[kCount], rate_sum[kCount], x[kCount], dy[kCount], delta[kCount];
    for (int v = 0; v < kCount; ++v) {
      dx[v] = rate_sum[v] = hn::Zero(d);
      dy[v] = hn::LoadU(d, dys + row + v * width);
      delta[v] = hn::LoadU(d, tile.delta + row + v * width);
      x[v] = hn::Mul(delta[v], hn::LoadU(d, tile.u + row + v * width));
    }
    for (Index n = 0; n < tile.states; ++n) {
      const V b = hn::Set(d, tile.b[t * tile.states + n]);
      const V c = hn::Set(d, tile.c[t * tile.states + n]);
      const Index line = n * kDiagonalTile + at, cell = t * block + line;
      V sum_b = hn::Zero(d), sum_c = hn::Zero(d);
      for (int v = 0; v < kCount; ++v) {
        const Index i = v * width;
        const V dh = hn::MulAdd(dy[v], c, hn::LoadU(d, g.dh + line + i));
        sum_c = hn::MulAdd(dy[v], hn::LoadU(d, history + cell + block + i), sum_c);
        sum_b = hn::MulAdd(dh, x[v], sum_b);
        dx[v] = hn::MulAdd(dh, b, dx[v]);
        const V back = hn::Mul(dh, hn::LoadU(d, decays + cell + i));
        const V p = hn::Mul(back, hn::LoadU(d, history + cell + i));
        rate_sum[v] = hn::MulAdd(p, hn::LoadU(d, tile.rates + line + i), rate_sum[v]);
        hn::StoreU(hn::MulAdd(p, delta[v], hn::LoadU(d, g.da + line + i)), d, g.da + line + i);
        hn::StoreU(back, d, g.dh + line + i);
      }
      const Index sum = (t * tile.states + n) * width;
      hn::StoreU(at == 0 ? sum_b : hn::Add(sum_b, hn::LoadU(d, db + sum)), d, db + sum);
      hn::StoreU(at == 0 ? sum_c : hn::Add(sum_c, hn::LoadU(d, dc + sum)), d, dc + sum);
    }
    for (int v = 0; v < kCount; ++v) {
      const Index i = v * width;
      const V u = hn::LoadU(d, tile.u + row + i);
      hn::StoreU(hn::MulAdd(delta[v], dx[v], hn::Mul(dy[v], hn::LoadU(d, tile.skip + at + i))), d, g.du + row + i);
      const V of_rates = hn::Mul(rate_sum[v], constant(0.69314718055994530942));
      hn::StoreU(hn::MulAdd(u, dx[v], of_rates), d, g.ddelta + row + i);
      hn::StoreU(hn::MulAdd(u, dy[v], hn::LoadU(d, g.dskip + at + i)), d, g.dskip + at + i);
    }
  }
}

/// y_i = the sum of the lanes of vector i of x, for n vectors, a multiple of lanes(); x is overwritten. Neighbours are
/// added in pairs, and two vectors of pairs put together, until each element is a sum.
HWY_INLINE void sum_lanes([[maybe_unused]] Real* x, [[maybe_unused]] Index n) {
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const Index width = lanes();
  for (Index vectors = n, left = width; left > 1; vectors /= 2, left /= 2)
    for (Index i = 0; i < vectors / 2; ++i) {
      const V low = hn::LoadU(d, x + 2 * i * width);
      const V high = hn::LoadU(d, x + (2 * i + 1) * width);
      hn::StoreU(hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)), d, x + i * width);
    }
#endif
}

void diagonal_backward(const DiagonalTile& tile, const Real* history, const Real* decays, const Real* dy,
                       const DiagonalGradients& d) {
  const Index sums = tile.tokens * tile.states, padded = (sums + lanes() - 1) / lanes() * lanes();
  Real *const db = d.room, *const dc = d.room + padded * lanes();
  for_groups(tile.width,
             [&](Index at, auto count) HWY_ATTR { backward_group<count()>(tile, at, history, decays, dy, d, db, dc); });
  for (const auto& [from, to] : {std::pair{db, d.db}, {dc, d.dc}}) {
    for (Index i = sums * lanes(); i < padded * lanes(); ++i) from[i] = 0;
    sum_lanes(from, padded);
    std::memcpy(to, from, static_cast<size_t>(sums) * sizeof(Real));
  }
}

Index diagonal_room(Index tokens, Index states) { return 2 * (tokens * states + lanes()) * lanes(); }

void diagonal_step(Real* y, Real* h, const Real* u, const Real* delta, const Real* a, const Real* b, const Real* c,
                   const Real* skip, Index channels, Index states) {
  const V to_binary = constant(1.44269504088896340736);
  for (Index i = 0; i < channels; ++i) {
    const V step = hn::Set(D(), delta[i]);
    const V x = hn::Set(D(), delta[i] * u[i]);
    Real* const held = h + i * states;
    const Real* const rate = a + i * states;
    V sum = hn::Zero(D());
    for_vectors(states, [&](auto load, auto store, Index count) QUIPU_LANEWISE {
      const V decay = exp2_of_product(step, hn::Mul(load(rate), to_binary));
      const V next = hn::MulAdd(decay, load(held), hn::Mul(x, load(b)));
      store(next, held);
      const V term = hn::Mul(next, load(c));
      sum = hn::Add(sum, count < lanes() ? keep_first(term, count) : term);
    });
    y[i] = hn::GetLane(hn::SumOfLanes(D(), sum)) + skip[i] * u[i];
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(diagonal_forward);
HWY_EXPORT(diagonal_history);
HWY_EXPORT(diagonal_backward);
HWY_EXPORT(diagonal_room);
HWY_EXPORT(diagonal_step);

void diagonal_forward(const DiagonalTile& tile, Real* h, Real* y) {
  HWY_DYNAMIC_DISPATCH(diagonal_forward)(tile, h, y);
}
void diagonal_history(const DiagonalTile& tile, Real* history, Real* decays) {
  HWY_DYNAMIC_DISPATCH(diagonal_history)(tile, history, decays);
}
void diagonal_backward(const DiagonalTile& tile, const Real* history, const Real* decays, const Real* dy,
                       const DiagonalGradients& d) {
  HWY_DYNAMIC_DISPATCH(diagonal_backward)(tile, history, decays, dy, d);
}
Index diagonal_room(Index tokens, Index states) { return HWY_DYNAMIC_DISPATCH(diagonal_room)(tokens, states); }
void diagonal_step(Real* y, Real* h, const Real* u, const Real* delta, const Real* a, const Real* b, const Real* c,
                   const Real* skip, Index channels, Index states) {
  HWY_DYNAMIC_DISPATCH(diagonal_step)(y, h, u, delta, a, b, c, skip, channels, states);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
