#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/packed_rows.cpp"
#define HWY_DISABLED_TARGETS HWY_SSSE3
#define HWY_WANT_AVX3_DL         // AVX-512 with VNNI
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tensor/packed_rows.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

/// Asks for what is needed 6 KiB further on, since the hardware's own prefetching ends at each page: into the
/// second-level cache, which can wait for more lines at once than the first.
HWY_INLINE void prefetch(const void* from) { __builtin_prefetch(static_cast<const std::byte*>(from) + 6144, 0, 2); }

#ifndef QUIPU_DOUBLE

#if HWY_TARGET == HWY_SCALAR

void packed_dot_rows(float* y, const PackedMatrix& w, Index begin, Index end, const PackedInput& x, const float* bias) {
  const Index cols = w.cols();
  std::vector<float> row(static_cast<std::size_t>(cols));
  for (Index r = begin; r < end; ++r) {
    decode_row(w.format(), {w.row(r), static_cast<std::size_t>(w.row_size())}, row);
    double total = bias == nullptr ? 0 : bias[r];
    for (Index i = 0; i < cols; ++i) {
      const Index b = i / kFormatBlock;
      const double back = w.format() == NumberFormat::q4 ? std::exp2(4.0 * static_cast<double>(b % 4 % 3)) : 1;
      const double value = w.format() == NumberFormat::bf16 ? (i % 2 == 0 ? x.even : x.odd)[i / 2]
                                                            : x.q[i] * static_cast<double>(x.scale[b]) * back;
      total += row[static_cast<std::size_t>(i)] * value;
    }
    y[r] = static_cast<float>(total);
  }
}

#else

using D16 = hn::Repartition<std::int16_t, D>;
using D32 = hn::Repartition<std::int32_t, D>;
using DU16 = hn::Repartition<std::uint16_t, D>;
using DU32 = hn::Repartition<std::uint32_t, D>;
using DHalf = hn::Rebind<hwy::float16_t, D>;
using D8 = hn::Rebind<std::int8_t, D16>;

constexpr Index kSpan = 64;  // blocks whose scales are made ready at once

/// Sums of products of neighbours, in int32 lanes in some order.
HWY_INLINE hn::Vec<D32> add_products(hn::Vec<D32> sum, hn::Vec<D16> a, hn::Vec<D16> b) {
#if HWY_TARGET == HWY_AVX3_DL
  asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "vm"(b.raw));  // no operation of this Highway's
  return sum;
#else
  hn::Vec<D32> rest = hn::Zero(D32());
  return hn::Add(hn::ReorderWidenMulAccumulate(D32(), a, b, sum, rest), rest);
#endif
}

/// A vector of float16s at `from`, of which n count; zeros behind them.
HWY_INLINE V load_halves(const std::byte* from, Index n) {
  const V v = hn::PromoteTo(D(), hn::LoadU(DHalf(), reinterpret_cast<const hwy::float16_t*>(from)));
  return n >= lanes() ? v : keep_first(v, n);
}

float bf16_dot(const std::byte* stored, Index cols, const PackedInput& x) {
  const auto* const w = reinterpret_cast<const std::uint16_t*>(stored);
  const D d;
  const Index pair = 2 * lanes();
  V even = hn::Zero(d), odd = even, even2 = even, odd2 = even;
  const auto add = [&](Index i, V& e, V& o) QUIPU_LANEWISE {
    const auto v = hn::BitCast(DU32(), hn::LoadU(DU16(), w + i));
    e = hn::MulAdd(hn::BitCast(d, hn::ShiftLeft<16>(v)), hn::LoadU(d, x.even + i / 2), e);
    o = hn::MulAdd(hn::BitCast(d, hn::And(v, hn::Set(DU32(), 0xffff0000U))), hn::LoadU(d, x.odd + i / 2), o);
  };
  Index i = 0;
  for (; i + 2 * pair <= cols; i += 2 * pair) {
    for (Index at = 0; at < 2 * pair; at += 32) prefetch(w + i + at);
    add(i, even, odd);
    add(i + pair, even2, odd2);
  }
  for (; i + pair <= cols; i += pair) add(i, even, odd);
  float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(even, odd), hn::Add(even2, odd2))));
  for (; i < cols; ++i) {
    float value;
    decode_row(NumberFormat::bf16, {stored + 2 * i, 2}, {&value, 1});
    total += value * (i % 2 == 0 ? x.even : x.odd)[i / 2];
  }
  return total;
}

float q8_dot(const std::byte* stored, Index blocks, const PackedInput& x) {
  const D d;
  const D16 d16;
  const Index width = static_cast<Index>(hn::Lanes(d16));
  const auto* const w = reinterpret_cast<const std::int8_t*>(stored);
  const std::byte* const halves = stored + blocks * kFormatBlock;
  HWY_ALIGN float scales[kSpan];
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (Index first = 0; first < blocks; first += kSpan) {
    const Index n = std::min(kSpan, blocks - first);
    for (Index b = 0; b < n; b += lanes()) {
      prefetch(halves + 2 * (first + b));
      hn::Store(hn::Mul(load_halves(halves + 2 * (first + b), n - b), hn::LoadU(d, x.scale + first + b)), d,
                scales + b);
    }
    const auto add = [&](Index b, V sum) QUIPU_LANEWISE {
      hn::Vec<D32> products = hn::Zero(D32());
      const Index at = (first + b) * kFormatBlock;
      for (Index i = at; i < at + kFormatBlock; i += width)
        products = add_products(products, hn::PromoteTo(d16, hn::LoadU(D8(), w + i)), hn::LoadU(d16, x.q + i));
      return hn::MulAdd(hn::ConvertTo(d, products), hn::Set(d, scales[b]), sum);
    };
    Index b = 0;
    for (; b + 4 <= n; b += 4) {
      prefetch(w + (first + b) * kFormatBlock);
      prefetch(w + (first + b + 2) * kFormatBlock);
      s0 = add(b, s0), s1 = add(b + 1, s1), s2 = add(b + 2, s2), s3 = add(b + 3, s3);
    }
    for (; b < n; ++b) s0 = add(b, s0);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

/// The third and fourth block of a word stay at 16 and 256 times their numbers (x.scale makes up for it); a shift
/// brings down the fourth, whose numbers would else take the sign bit.
float q4_dot(const std::byte* stored, Index blocks, const PackedInput& x) {
  const D d;
  const D16 d16;
  const DU16 du16;
  const Index width = static_cast<Index>(hn::Lanes(d16));
  const auto* const w = reinterpret_cast<const std::uint16_t*>(stored);
  const std::byte* const halves = stored + blocks * kFormatBlock / 2;
  HWY_ALIGN float scales[kSpan];
  const auto m0 = hn::Set(du16, 0x000f), m1 = hn::Set(du16, 0x00f0), m2 = hn::Set(du16, 0x0f00);
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, minima = s0;
  for (Index first = 0; first < blocks; first += kSpan) {
    const Index n = std::min(kSpan, blocks - first);
    for (Index b = 0; b < n; b += lanes()) {
      const std::byte* const scale = halves + 2 * (first + b);
      prefetch(scale);
      prefetch(scale + 2 * blocks);
      hn::Store(hn::Mul(load_halves(scale, n - b), hn::LoadU(d, x.scale + first + b)), d, scales + b);
      minima = hn::MulAdd(load_halves(scale + 2 * blocks, n - b), hn::LoadU(d, x.sum + first + b), minima);
    }
    for (Index b = 0; b < n; b += 4) {
      const std::uint16_t* const words = w + (first + b) / 4 * kFormatBlock;
      const std::int16_t* const q = x.q + (first + b) * kFormatBlock;
      prefetch(words);
      hn::Vec<D32> p0 = hn::Zero(D32()), p1 = p0, p2 = p0, p3 = p0;
      for (Index i = 0; i < kFormatBlock; i += width) {
        const auto v = hn::LoadU(du16, words + i);
        p0 = add_products(p0, hn::BitCast(d16, hn::And(v, m0)), hn::LoadU(d16, q + i));
        p1 = add_products(p1, hn::BitCast(d16, hn::And(v, m1)), hn::LoadU(d16, q + kFormatBlock + i));
        p2 = add_products(p2, hn::BitCast(d16, hn::And(v, m2)), hn::LoadU(d16, q + 2 * kFormatBlock + i));
        p3 = add_products(p3, hn::BitCast(d16, hn::ShiftRight<12>(v)), hn::LoadU(d16, q + 3 * kFormatBlock + i));
      }
      s0 = hn::MulAdd(hn::ConvertTo(d, p0), hn::Set(d, scales[b]), s0);
      s1 = hn::MulAdd(hn::ConvertTo(d, p1), hn::Set(d, scales[b + 1]), s1);
      s2 = hn::MulAdd(hn::ConvertTo(d, p2), hn::Set(d, scales[b + 2]), s2);
      s3 = hn::MulAdd(hn::ConvertTo(d, p3), hn::Set(d, scales[b + 3]), s3);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), minima)));
}

void packed_dot_rows(float* y, const PackedMatrix& w, Index begin, Index end, const PackedInput& x, const float* bias) {
  const Index blocks = row_blocks(w.format(), w.cols());
  for (Index r = begin; r < end; ++r) {
    const float total = w.format() == NumberFormat::bf16 ? bf16_dot(w.row(r), w.cols(), x)
                        : w.format() == NumberFormat::q8 ? q8_dot(w.row(r), blocks, x)
                                                         : q4_dot(w.row(r), blocks, x);
    y[r] = bias == nullptr ? total : total + bias[r];
  }
}

#endif  // HWY_SCALAR

/// Rounds blocks of x (padded with zeros) to integers.
void round_blocks(const PackedInput& x, const float* padded, Index blocks, bool four_bits) {
  const D d;
  const hn::Rebind<std::int16_t, D> d16;
  for (Index b = 0; b < blocks; ++b) {
    const float* const from = padded + b * kFormatBlock;
    V largest = hn::Zero(d);
    for (Index i = 0; i < kFormatBlock; i += lanes()) largest = hn::Max(largest, hn::Abs(hn::LoadU(d, from + i)));
    const float most = hn::GetLane(hn::MaxOfLanes(d, largest));
    const V up = hn::Set(d, most > 1e-30F ? 32767 / most : 0);
    V sum = hn::Zero(d), bad = sum;  // bad: NaN where an element is not finite
    for (Index i = 0; i < kFormatBlock; i += lanes()) {
      const V v = hn::LoadU(d, from + i);
      bad = hn::MulAdd(v, hn::Zero(d), bad);
      const auto q = hn::NearestInt(hn::Mul(v, up));
      sum = hn::Add(sum, hn::ConvertTo(d, q));
      hn::StoreU(hn::DemoteTo(d16, q), d16, x.q + b * kFormatBlock + i);
    }
    constexpr float kPlace[] = {1, 1.0F / 16, 1.0F / 256, 1};
    const float down = (most > 1e-30F ? most / 32767 : 0) + hn::GetLane(hn::SumOfLanes(d, bad));
    x.scale[b] = four_bits ? down * kPlace[b % 4] : down;
    x.sum[b] = hn::GetLane(hn::SumOfLanes(d, sum)) * down;
  }
}

#endif  // QUIPU_DOUBLE

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

#ifndef QUIPU_DOUBLE
HWY_EXPORT(packed_dot_rows);
HWY_EXPORT(round_blocks);

namespace {

constexpr Index kRoom = 64;  // vectors may reach this far behind an array, in bytes

Index aligned(Index bytes) { return (bytes + 2 * kRoom - 1) / kRoom * kRoom; }

}  // namespace

Index packed_input_bytes(const PackedMatrix& w) {
  const Index padded = padded_columns(w.format(), w.cols()), blocks = row_blocks(w.format(), w.cols());
  if (w.format() == NumberFormat::bf16) return kRoom + 2 * aligned((padded + 1) / 2 * 4);
  return kRoom + aligned(4 * padded) + aligned(2 * padded) + 2 * aligned(4 * blocks);
}

PackedInput make_packed_input(const PackedMatrix& w, const float* x, std::byte* room) {
  const Index cols = w.cols(), padded = padded_columns(w.format(), cols), blocks = row_blocks(w.format(), cols);
  room += (kRoom - reinterpret_cast<std::uintptr_t>(room) % kRoom) % kRoom;  // a load that crosses lines costs two
  const auto take = [&room](Index bytes) {
    std::byte* const at = room;
    room += aligned(bytes);
    return at;
  };
  PackedInput in{};
  if (w.format() == NumberFormat::bf16) {
    in.even = reinterpret_cast<float*>(take((padded + 1) / 2 * 4));
    in.odd = reinterpret_cast<float*>(take((padded + 1) / 2 * 4));
    for (Index i = 0; i + 1 < cols; i += 2) in.even[i / 2] = x[i], in.odd[i / 2] = x[i + 1];
    if (cols % 2 != 0) in.even[cols / 2] = x[cols - 1];
    return in;
  }
  auto* const numbers = reinterpret_cast<float*>(take(4 * padded));
  in.q = reinterpret_cast<std::int16_t*>(take(2 * padded));
  in.scale = reinterpret_cast<float*>(take(4 * blocks));
  in.sum = reinterpret_cast<float*>(take(4 * blocks));
  for (float* const end : {in.scale + blocks, in.sum + blocks}) std::fill_n(end, kRoom / 4, 0.0F);
  const float* from = x;
  if (padded != cols) {
    std::copy_n(x, cols, numbers);
    std::fill(numbers + cols, numbers + padded, 0.0F);
    from = numbers;
  }
  HWY_DYNAMIC_DISPATCH(round_blocks)(in, from, blocks, w.format() == NumberFormat::q4);
  return in;
}

void packed_dot_rows(float* y, const PackedMatrix& w, Index begin, Index end, const PackedInput& x, const float* bias) {
  HWY_DYNAMIC_DISPATCH(packed_dot_rows)(y, w, begin, end, x, bias);
}
#endif

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
