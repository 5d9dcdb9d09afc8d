#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/expand_rows.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include <algorithm>
#include <vector>

#include "tensor/packed_rows.h"
#include "tensor/simd_inl.h"

#ifndef QUIPU_DOUBLE

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

using DU32 = hn::RebindToUnsigned<D>;
using DU16 = hn::Rebind<std::uint16_t, D>;
using D32 = hn::RebindToSigned<D>;
using D8 = hn::Rebind<std::int8_t, D>;

HWY_INLINE float half_at(const std::byte* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return half_to_float(bits);
}

void expand_bf16(float* out, const std::byte* stored, Index cols) {
  const auto* const w = reinterpret_cast<const std::uint16_t*>(stored);
  Index i = 0;
  for (; i + lanes() <= cols; i += lanes()) {
    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(DU32(), hn::LoadU(DU16(), w + i)));
    hn::StoreU(hn::BitCast(D(), bits), D(), out + i);
  }
  for (; i < cols; ++i) decode_row(NumberFormat::bf16, {stored + 2 * i, 2}, {out + i, 1});
}

/// Rows of padded_columns numbers.
void expand_q8(float* out, const std::byte* stored, Index blocks) {
  const auto* const w = reinterpret_cast<const std::int8_t*>(stored);
  for (Index b = 0; b < blocks; ++b) {
    const V scale = hn::Set(D(), half_at(stored + blocks * kFormatBlock + 2 * b));
    for (Index i = b * kFormatBlock; i < (b + 1) * kFormatBlock; i += lanes()) {
      const auto q = hn::PromoteTo(D32(), hn::LoadU(D8(), w + i));
      hn::StoreU(hn::Mul(hn::ConvertTo(D(), q), scale), D(), out + i);
    }
  }
}

void expand_q4(float* out, const std::byte* stored, Index blocks) {
  const auto* const w = reinterpret_cast<const std::uint16_t*>(stored);
  const std::byte* const halves = stored + blocks * kFormatBlock / 2;
  const auto low = hn::Set(DU32(), 15U);
  for (Index b = 0; b < blocks; b += 4) {
    float scale[4], minimum[4];
    for (Index k = 0; k < 4; ++k)
      scale[k] = half_at(halves + 2 * (b + k)), minimum[k] = half_at(halves + 2 * (blocks + b + k));
    for (Index i = 0; i < kFormatBlock; i += lanes()) {
      const auto words = hn::PromoteTo(DU32(), hn::LoadU(DU16(), w + b / 4 * kFormatBlock + i));
      float* const to = out + b * kFormatBlock + i;
      const auto put = [&](decltype(words) q, Index k) QUIPU_LANEWISE {
        const V number = hn::ConvertTo(D(), hn::BitCast(D32(), hn::And(q, low)));
        hn::StoreU(hn::MulAdd(number, hn::Set(D(), scale[k]), hn::Set(D(), minimum[k])), D(), to + k * kFormatBlock);
      };
      put(words, 0);
      put(hn::ShiftRight<4>(words), 1);
      put(hn::ShiftRight<8>(words), 2);
      put(hn::ShiftRight<12>(words), 3);
    }
  }
}

void expand_row(float* out, const PackedMatrix& w, Index r) {
  const Index blocks = row_blocks(w.format(), w.cols());
  if (w.format() == NumberFormat::bf16) return expand_bf16(out, w.row(r), w.cols());
  w.format() == NumberFormat::q8 ? expand_q8(out, w.row(r), blocks) : expand_q4(out, w.row(r), blocks);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUIPU_DOUBLE

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

#ifndef QUIPU_DOUBLE
HWY_EXPORT(expand_row);
#endif

void expand_rows(Real* out, Index stride, const PackedMatrix& w, Index begin, Index end) {
  const Index padded = padded_columns(w.format(), w.cols());
  std::vector<float> whole;  // where a row has no room for its blocks
  if (stride < padded || !std::is_same_v<Real, float>) whole.resize(static_cast<std::size_t>(padded));
  for (Index r = begin; r < end; ++r) {
    Real* const row = out + (r - begin) * stride;
#ifdef QUIPU_DOUBLE
    decode_row(w.format(), {w.row(r), static_cast<std::size_t>(w.row_size())},
               {whole.data(), static_cast<std::size_t>(w.cols())});
    std::copy_n(whole.data(), w.cols(), row);
#else
    HWY_DYNAMIC_DISPATCH(expand_row)(whole.empty() ? row : whole.data(), w, r);
    if (!whole.empty()) std::copy_n(whole.data(), w.cols(), row);
#endif
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
