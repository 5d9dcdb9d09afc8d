#include "scan/decay_blocks.h"

#include <algorithm>

#include "scan/outer_scan.h"
#include "tensor/decay_rows.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {

DecayBlocks::DecayBlocks(Index rows, Index width)
    : width_(width),
      sums_(static_cast<std::size_t>(width)),
      log_sums_(static_cast<std::size_t>(rows * width)),
      growth_(static_cast<std::size_t>(rows * width)),
      inverse_(static_cast<std::size_t>(rows * width)) {
  begins_.reserve(static_cast<std::size_t>(rows) + 1);
  entry_.reserve(static_cast<std::size_t>((rows + 1) * width));
}

void DecayBlocks::cut(Matrix log_decay, Index lag) {
  const Index rows = log_decay.rows + lag;
  if (repeated_ != nullptr && repeated_ == log_decay.data && log_decay.stride == 0 && begins_.back() == rows) return;
  repeated_ = log_decay.stride == 0 ? log_decay.data : nullptr;
  begins_.assign(1, 0);
  if (width_ == 0) {
    begins_.push_back(rows);
    return;
  }
  const auto push_entry = [&](auto value_of) {
    for (Index c = 0; c < width_; ++c) entry_.push_back(static_cast<Real>(value_of(c)));
  };
  entry_.clear();
  push_entry([&](Index c) { return lag > 0 ? Real{0} : log_decay(0, c); });
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill_n(log_sums_.begin(), width_, Real{0});
  for (Index t = 1; t < rows; ++t) {
    Real* const rounded = log_sums_.data() + t * width_;
    if (kernels::add_to_sums(sums_.data(), rounded, log_decay.row(t - lag), -kDecayRange, width_)) continue;
    push_entry([&](Index c) { return sums_[static_cast<std::size_t>(c)]; });
    begins_.push_back(t);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    std::fill_n(rounded, width_, Real{0});
  }
  begins_.push_back(rows);
  push_entry([&](Index c) { return sums_[static_cast<std::size_t>(c)]; });
  kernels::exp(entry_.data(), entry_.data(), static_cast<Index>(entry_.size()));
  const Index n = rows * width_;
  kernels::exp(growth_.data(), log_sums_.data(), n);
  kernels::scale(log_sums_.data(), -1, log_sums_.data(), n);
  kernels::exp(inverse_.data(), log_sums_.data(), n);
}

void scale_row(Real* to, const Real* from, Index n, const Real* factor, Index width) {
  if (width == 0)
    std::copy_n(from, n, to);
  else if (width == 1)
    kernels::scale(to, *factor, from, n);
  else
    kernels::multiply(to, from, factor, n);
}

void scale_columns(Matrix x, const Real* factor, Index width) {
  if (width == 0) return;
  for (Index r = 0; r < x.rows; ++r) scale_row(x.row(r), x.row(r), x.cols, factor, width);
}

void scale_rows(Matrix x, const Real* factor, Index width) {
  if (width == 0) return;
  for (Index r = 0; r < x.rows; ++r) kernels::scale(x.row(r), factor[width == 1 ? 0 : r], x.row(r), x.cols);
}

}  // namespace quipu::inline QUIPU_REAL_NS
