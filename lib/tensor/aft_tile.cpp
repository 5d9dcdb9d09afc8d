#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/aft_tile.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include <algorithm>

#include "tensor/aft_tile.h"
#include "tensor/simd_inl.h"
// last: it needs what the above includes
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

HWY_INLINE Index visible_to(const AftTile& tile, Index query) { return std::min(tile.k.rows, tile.visible + query); }

void aft_add(const AftTile& tile, const AftSums& sums) {
  for (Index r = 0; r < sums.top.rows; ++r) {
    const Index seen = visible_to(tile, r);
    const Real* const w = tile.w.row(r);
    Real *const tops = sums.top.row(r), *const numerators = sums.numerator.row(r);
    Real* const denominators = sums.denominator.row(r);
    for_vectors(tile.k.cols, [&](auto load, auto store, Index) QUIPU_LANEWISE {
      V top = load(tops);
      const V before = top;
      for (Index s = 0; s < seen; ++s) top = hn::Max(top, hn::Add(load(tile.k.row(s)), hn::Set(D(), w[s])));
      const V kept = exp_of_bounded(hn::Sub(before, top));
      V numerator = hn::Mul(kept, load(numerators)), denominator = hn::Mul(kept, load(denominators));
      for (Index s = 0; s < seen; ++s) {
        const V e = exp_of_bounded(hn::Sub(hn::Add(load(tile.k.row(s)), hn::Set(D(), w[s])), top));
        numerator = hn::MulAdd(e, load(tile.v.row(s)), numerator);
        denominator = hn::Add(denominator, e);
      }
      store(top, tops), store(numerator, numerators), store(denominator, denominators);
    });
  }
}

void aft_merge(const AftSums& sums, Matrix numerator, Matrix denominator, const Real* key_top, const Real* bias_top,
               Index stride) {
  for (Index r = 0; r < sums.top.rows; ++r) {
    const V bias = hn::Set(D(), bias_top[r * stride]);
    Real *const tops = sums.top.row(r), *const to_n = sums.numerator.row(r), *const to_d = sums.denominator.row(r);
    const Real *const n = numerator.row(r), *const d = denominator.row(r);
    for_vectors(sums.top.cols, [&](auto load, auto store, Index) QUIPU_LANEWISE {
      const V added = hn::Add(load(key_top), bias), before = load(tops);
      const V top = hn::Max(before, added);
      const V kept = exp_of_bounded(hn::Sub(before, top)), weight = exp_of_bounded(hn::Sub(added, top));
      store(hn::MulAdd(weight, load(n), hn::Mul(kept, load(to_n))), to_n);
      store(hn::MulAdd(weight, load(d), hn::Mul(kept, load(to_d))), to_d);
      store(top, tops);
    });
  }
}

void aft_finish(const AftSums& sums, Matrix y, Matrix log_sum) {
  for (Index r = 0; r < y.rows; ++r) {
    const Real *const n = sums.numerator.row(r), *const d = sums.denominator.row(r), *const top = sums.top.row(r);
    Real *const to = y.row(r), *const log_to = log_sum.data == nullptr ? nullptr : log_sum.row(r);
    for_vectors(y.cols, [&](auto load, auto store, Index) QUIPU_LANEWISE {
      const V denominator = load(d);
      store(hn::Div(load(n), denominator), to);
      if (log_to != nullptr) store(hn::Add(load(top), hn::Log(D(), denominator)), log_to);
    });
  }
}

void aft_key_weights(Matrix k, Matrix v, Real* top, Matrix ek, Matrix ekv) {
  for_vectors(k.cols, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    V largest = load(k.row(0));
    for (Index s = 1; s < k.rows; ++s) largest = hn::Max(largest, load(k.row(s)));
    store(largest, top);
    for (Index s = 0; s < k.rows; ++s) {
      const V e = exp_of_bounded(hn::Sub(load(k.row(s)), largest));
      store(e, ek.row(s));
      store(hn::Mul(e, load(v.row(s))), ekv.row(s));
    }
  });
}

void aft_key_gradients(const AftTile& tile, const AftQueries& q, Matrix dk, Matrix dv) {
  for_vectors(tile.k.cols, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    for (Index s = 0; s < tile.k.rows; ++s) {
      const V key = load(tile.k.row(s)), value = load(tile.v.row(s));
      V to_key = load(dk.row(s)), to_value = load(dv.row(s));
      for (Index r = std::max<Index>(0, s + 1 - tile.visible); r < q.dy.rows; ++r) {
        const V e = exp_of(hn::Sub(hn::Add(key, hn::Set(D(), tile.w(r, s))), load(q.log_sum.row(r))));
        const V g = hn::Mul(e, load(q.dy.row(r)));
        to_value = hn::Add(to_value, g);
        to_key = hn::MulAdd(g, hn::Sub(value, load(q.y.row(r))), to_key);
      }
      store(to_key, dk.row(s)), store(to_value, dv.row(s));
    }
  });
}

void aft_bias_gradients(const AftTile& tile, const AftQueries& q, Matrix dw) {
  for (Index r = 0; r < q.dy.rows; ++r) {
    const Real *const dy = q.dy.row(r), *const y = q.y.row(r), *const log_sum = q.log_sum.row(r);
    for (Index s = 0; s < visible_to(tile, r); ++s) {
      const Real *const k = tile.k.row(s), *const v = tile.v.row(s);
      const V w = hn::Set(D(), tile.w(r, s));
      dw(r, s) += sum_of(tile.k.cols, [=](auto load) QUIPU_LANEWISE {
        const V e = exp_of(hn::Sub(hn::Add(load(k), w), load(log_sum)));
        return hn::Mul(hn::Mul(e, load(dy)), hn::Sub(load(v), load(y)));
      });
    }
  }
}

void aft_scaled_gradients(const AftQueries& q, const Real* key_top, const Real* bias_top, Index stride, Matrix g,
                          Matrix h) {
  for (Index r = 0; r < q.dy.rows; ++r) {
    const V bias = hn::Set(D(), bias_top[r * stride]);
    const Real *const dy = q.dy.row(r), *const y = q.y.row(r), *const log_sum = q.log_sum.row(r);
    Real *const to_g = g.row(r), *const to_h = h.row(r);
    for_vectors(g.cols, [&](auto load, auto store, Index) QUIPU_LANEWISE {
      const V e = exp_of(hn::Sub(hn::Add(load(key_top), bias), load(log_sum)));
      const V scaled = hn::Mul(e, load(dy));
      store(scaled, to_g);
      store(hn::Mul(scaled, load(y)), to_h);
    });
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(aft_add);
HWY_EXPORT(aft_merge);
HWY_EXPORT(aft_finish);
HWY_EXPORT(aft_key_weights);
HWY_EXPORT(aft_key_gradients);
HWY_EXPORT(aft_bias_gradients);
HWY_EXPORT(aft_scaled_gradients);

void aft_add(const AftTile& tile, const AftSums& sums) { HWY_DYNAMIC_DISPATCH(aft_add)(tile, sums); }
void aft_merge(const AftSums& sums, Matrix numerator, Matrix denominator, const Real* key_top, const Real* bias_top,
               Index stride) {
  HWY_DYNAMIC_DISPATCH(aft_merge)(sums, numerator, denominator, key_top, bias_top, stride);
}
void aft_finish(const AftSums& sums, Matrix y, Matrix log_sum) { HWY_DYNAMIC_DISPATCH(aft_finish)(sums, y, log_sum); }
void aft_key_weights(Matrix k, Matrix v, Real* top, Matrix ek, Matrix ekv) {
  HWY_DYNAMIC_DISPATCH(aft_key_weights)(k, v, top, ek, ekv);
}
void aft_key_gradients(const AftTile& tile, const AftQueries& queries, Matrix dk, Matrix dv) {
  HWY_DYNAMIC_DISPATCH(aft_key_gradients)(tile, queries, dk, dv);
}
void aft_bias_gradients(const AftTile& tile, const AftQueries& queries, Matrix dw) {
  HWY_DYNAMIC_DISPATCH(aft_bias_gradients)(tile, queries, dw);
}
void aft_scaled_gradients(const AftQueries& queries, const Real* key_top, const Real* bias_top, Index stride, Matrix g,
                          Matrix h) {
  HWY_DYNAMIC_DISPATCH(aft_scaled_gradients)(queries, key_top, bias_top, stride, g, h);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
