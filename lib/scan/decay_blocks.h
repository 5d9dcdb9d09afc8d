#pragma once
#include <vector>

#include "tensor/view.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The log decays of one chunk, cut into blocks of rows within which they sum to less than kDecayRange in every
/// channel. Row t of block i, which starts at row r_i, has the cumulative decay c_t = g_{r_i + 1} + .. + g_t, so that
/// c = 0 at a block's first row and e^{c}, e^{-c} both stay far from overflow. What comes from before block i is
/// first brought to the block's reference by `entry(i)` = e^{sum of g after r_{i-1} up to r_i}. With a lag of 1 the
/// decays stand one row later: row t has g_{t-1}, row 0 none, and there is one row more.
class DecayBlocks {
 public:
  /// Room for chunks of up to `rows` tokens and `width` channels (0: no decay; one block, nothing to scale).
  DecayBlocks(Index rows, Index width);

  /// log_decay: [rows, width], of stride 0 where all rows are the same; then cutting it again costs nothing.
  void cut(Matrix log_decay, Index lag = 0);

  Index width() const { return width_; }
  Index count() const { return static_cast<Index>(begins_.size()) - 1; }
  Index begin(Index block) const { return begins_[static_cast<std::size_t>(block)]; }
  Index end(Index block) const { return begin(block + 1); }
  /// e^{c_t}, width values.
  const Real* growth(Index row) const { return growth_.data() + row * width_; }
  /// e^{-c_t}.
  const Real* inverse(Index row) const { return inverse_.data() + row * width_; }
  /// From the reference of block i-1 (of the state before the chunk, for i = 0) to that of block i; entry(count()) goes
  /// from the last block's reference to the end of the chunk.
  const Real* entry(Index block) const { return entry_.data() + block * width_; }

 private:
  Index width_;
  const Real* repeated_ = nullptr;  ///< the one row of what is cut
  std::vector<Index> begins_;
  std::vector<double> sums_;
  std::vector<Real> log_sums_, growth_, inverse_, entry_;
};

/// to = from times `factor` (`width` values: one for all n columns, or one a column; 0: a copy). `to` may be `from`.
void scale_row(Real* to, const Real* from, Index n, const Real* factor, Index width);
/// Multiplies each row of x by `factor` (`width` values: one for all columns, or one a column; 0: nothing to do).
void scale_columns(Matrix x, const Real* factor, Index width);
/// Multiplies row r of x by factor[r], or all by factor[0].
void scale_rows(Matrix x, const Real* factor, Index width);

}  // namespace quipu::inline QUIPU_REAL_NS
