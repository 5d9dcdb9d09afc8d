#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/bf16_rows.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "base/blocks.h"
#include "tensor/bf16_rows.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

#ifndef QUIPU_DOUBLE
HWY_INLINE auto rounded(V v) {
  const hn::RebindToSigned<D> d;
  const hn::Rebind<std::uint16_t, D> halves;
  const auto bits = hn::BitCast(d, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto up = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fff)));
  const auto nan = hn::RebindMask(d, hn::IsNaN(v));
  const auto whole = hn::IfThenElse(nan, hn::Or(bits, hn::Set(d, 0x400000)), up);
  return hn::DemoteTo(halves, hn::And(hn::ShiftRight<16>(whole), hn::Set(d, 0xffff)));
}

void round_to_bf16(std::uint16_t* y, const Real* x, Index n) {
  const hn::Rebind<std::uint16_t, D> halves;
  Index i = 0;
  for (; i + lanes() <= n; i += lanes()) hn::StoreU(rounded(hn::LoadU(D(), x + i)), halves, y + i);
  if (i == n) return;
  HWY_ALIGN std::uint16_t rest[HWY_MAX_BYTES / sizeof(Real)];
  hn::Store(rounded(load_first(x + i, n - i)), halves, rest);
  std::memcpy(y + i, rest, static_cast<std::size_t>(n - i) * sizeof(std::uint16_t));
}
#endif

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS {
namespace kernels {

#ifdef QUIPU_DOUBLE
void round_to_bf16(std::uint16_t*, const Real*, Index) { throw InternalError("bf16 from double"); }
#else
HWY_EXPORT(round_to_bf16);

void round_to_bf16(std::uint16_t* y, const Real* x, Index n) { HWY_DYNAMIC_DISPATCH(round_to_bf16)(y, x, n); }
#endif

}  // namespace kernels

RoundedMatrix::RoundedMatrix(Matrix x) : rows_(x.rows), cols_(x.cols), room_({(x.rows * x.cols + 1) / 2}) {
  const Index block = std::max<Index>(1, kElementBlock / std::max<Index>(1, cols_));
  for_blocks(rows_, block, [&](Index begin, Index end) {
    if (x.stride == cols_) return kernels::round_to_bf16(data() + begin * cols_, x.row(begin), (end - begin) * cols_);
    for (Index r = begin; r < end; ++r) kernels::round_to_bf16(data() + r * cols_, x.row(r), cols_);
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS
#endif  // HWY_ONCE
