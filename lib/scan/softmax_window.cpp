#include "scan/softmax_window.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kQueries = 128;  ///< rows of a tile
constexpr Index kKeys = 512;     ///< columns of a tile
constexpr Real kLowest = -std::numeric_limits<Real>::infinity();

struct Extents {
  Index batch, length, past, heads, key_heads, key, value, window;
  Real scale;

  Extents(const SoftmaxWindowInput& in, const Layout& layout) {
    batch = layout.batch, length = layout.length, past = in.k.extent(1) - length;
    heads = in.q.extent(2), key_heads = in.k.extent(2), key = in.q.extent(3), value = in.v.extent(3);
    window = in.window, scale = in.scale;
    require_shape("softmax attention: q", in.q.shape(), {batch, length, heads, key});
    require_shape("softmax attention: k", in.k.shape(), {batch, past + length, key_heads, key});
    require_shape("softmax attention: v", in.v.shape(), {batch, past + length, key_heads, value});
    if (past < 0 || heads % key_heads != 0)
      throw ShapeError("softmax attention: {} query heads for {} key heads", heads, key_heads);
  }
  Index groups() const { return heads / key_heads; }
};

/// A block of queries of one lane: rows [begin, end) of one document; `first` is the first key that the document has.
struct QueryBlock {
  Index lane, begin, end, first;
  std::vector<Index> reach{};  ///< of each row, one past the last that it sees, where that is not the row itself

  Index reach_of(Index t) const { return reach.empty() ? t + 1 : reach[static_cast<std::size_t>(t - begin)]; }
  Index farthest() const { return reach.empty() ? end : *std::ranges::max_element(reach); }
  /// The first key that query t sees; its last is past + reach - 1.
  Index low(Index t, const Extents& e) const {
    return e.window == 0 ? first : std::max(first, e.past + t - e.window + 1);
  }
};

std::vector<QueryBlock> query_blocks(const Extents& e, const SoftmaxWindowInput& in, const Layout& layout) {
  std::vector<QueryBlock> blocks;
  for (Index b = 0; b < e.batch; ++b)
    for (const Span& span : layout.spans(b)) {
      const Index before = span.begin > 0 || in.past.empty() ? 0 : in.past[static_cast<std::size_t>(b)];
      const Index first = span.fresh ? e.past + span.begin : e.past - before;
      for (Index t = span.begin; t < span.end; t += kQueries) {
        QueryBlock& block = blocks.emplace_back(b, t, std::min(span.end, t + kQueries), first);
        if (layout.blocks.empty()) continue;
        for (Index row = t; row < block.end; ++row) block.reach.push_back(std::min(layout.reach(b, row), span.end));
      }
    }
  return blocks;
}

Matrix rows_of(const Tensor& x, Index lane, Index head, Index begin, Index end) {
  const Index width = x.extent(3), stride = x.extent(2) * width;
  return {x.data() + (lane * x.extent(1) + begin) * stride + head * width, end - begin, width, stride};
}

/// Columns of a tile that query t sees: [from, to) relative to the tile's first key.
std::pair<Index, Index> visible(const QueryBlock& block, Index t, Index key_begin, Index key_end, const Extents& e) {
  const Index from = std::clamp(block.low(t, e), key_begin, key_end);
  const Index to = std::clamp(e.past + block.reach_of(t), from, key_end);
  return {from - key_begin, to - key_begin};
}

/// Forward of one block of queries of one head; log_sum: [T] of this lane and head, or null.
void forward_block(const QueryBlock& block, Matrix q, const Tensor& k, const Tensor& v, Index head, Matrix y,
                   Real* log_sum, const Extents& e, std::vector<Real>& tile) {
  const Index rows = block.end - block.begin;
  std::array<Real, kQueries> maximum, total;
  maximum.fill(kLowest);
  total.fill(0);
  const Index low = block.low(block.begin, e), high = e.past + block.farthest();
  for (Index begin = low; begin < high; begin += kKeys) {
    const Index end = std::min(high, begin + kKeys);
    const Matrix scores{tile.data(), rows, end - begin, end - begin};
    blas::multiply_bt(scores, q, rows_of(k, block.lane, head, begin, end));
    for (Index r = 0; r < rows; ++r) {
      const auto [from, to] = visible(block, block.begin + r, begin, end, e);
      Real* const row = scores.row(r);
      Real& top = maximum[static_cast<std::size_t>(r)];
      Real& sum = total[static_cast<std::size_t>(r)];
      std::fill(row, row + from, Real{0});
      std::fill(row + to, row + scores.cols, Real{0});
      if (from == to) continue;
      const Real highest = std::max(top, e.scale * kernels::max(row + from, to - from));
      const Real correction = begin == low || top == kLowest ? Real{0} : std::exp(top - highest);
      if (begin != low && correction != 1) kernels::scale(y.row(r), correction, y.row(r), y.cols);
      sum = sum * correction + kernels::exp_scaled_sum(row + from, row + from, e.scale, highest, to - from);
      top = highest;
    }
    blas::multiply(y, scores, rows_of(v, block.lane, head, begin, end), begin == low ? Real{0} : Real{1});
  }
  for (Index r = 0; r < rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    kernels::scale(y.row(r), 1 / total[i], y.row(r), y.cols);
    if (log_sum != nullptr) log_sum[block.begin + r] = maximum[i] + std::log(total[i]);
  }
}

struct Backward {
  Extents e;
  std::vector<QueryBlock> blocks;
  Tensor q, k, v, y, log_sum;

  void run(const Tensor& dy, const Tensor& dq, const Tensor& dk, const Tensor& dv) const {
    const Index jobs = e.batch * e.key_heads;
#pragma omp parallel
    {
      std::vector<Real> tile(static_cast<std::size_t>(kQueries * kKeys)), dtile(tile.size());
#pragma omp for schedule(dynamic)
      for (Index job = 0; job < jobs; ++job) {
        const Index lane = job / e.key_heads, head = job % e.key_heads;
        for (const QueryBlock& block : blocks)
          if (block.lane == lane)
            for (Index g = 0; g < e.groups(); ++g)
              backward_block(block, head, head * e.groups() + g, dy, dq, dk, dv, tile, dtile);
      }
    }
  }

 private:
  void backward_block(const QueryBlock& block, Index key_head, Index head, const Tensor& dy, const Tensor& dq,
                      const Tensor& dk, const Tensor& dv, std::vector<Real>& tile, std::vector<Real>& dtile) const {
    const Index rows = block.end - block.begin;
    const Matrix q_rows = rows_of(q, block.lane, head, block.begin, block.end);
    const Matrix y_rows = rows_of(y, block.lane, head, block.begin, block.end);
    const Matrix dy_rows = rows_of(dy, block.lane, head, block.begin, block.end);
    const Matrix dq_rows = rows_of(dq, block.lane, head, block.begin, block.end);
    const Real* const sums = log_sum.data() + (block.lane * e.heads + head) * e.length + block.begin;
    std::array<Real, kQueries> delta;
    for (Index r = 0; r < rows; ++r)
      delta[static_cast<std::size_t>(r)] = kernels::dot(y_rows.row(r), dy_rows.row(r), y_rows.cols);
    const Index low = block.low(block.begin, e), high = e.past + block.farthest();
    for (Index begin = low; begin < high; begin += kKeys) {
      const Index end = std::min(high, begin + kKeys);
      const Matrix p{tile.data(), rows, end - begin, end - begin}, ds{dtile.data(), rows, end - begin, end - begin};
      const Matrix k_rows = rows_of(k, block.lane, key_head, begin, end);
      blas::multiply_bt(p, q_rows, k_rows);
      blas::multiply_bt(ds, dy_rows, rows_of(v, block.lane, key_head, begin, end));
      for (Index r = 0; r < rows; ++r) {
        const auto [from, to] = visible(block, block.begin + r, begin, end, e);
        Real *const p_row = p.row(r), *const ds_row = ds.row(r);
        for (Real* const row : {p_row, ds_row}) {
          std::fill(row, row + from, Real{0});
          std::fill(row + to, row + p.cols, Real{0});
        }
        kernels::exp_scaled_sum(p_row + from, p_row + from, e.scale, sums[r], to - from);
        const Real shift = delta[static_cast<std::size_t>(r)];
        for (Index c = from; c < to; ++c) ds_row[c] = p_row[c] * (ds_row[c] - shift);
      }
      blas::multiply_at(rows_of(dv, block.lane, key_head, begin, end), p, dy_rows, 1);
      blas::multiply(dq_rows, ds, k_rows, begin == low ? Real{0} : Real{1}, e.scale);
      blas::multiply_at(rows_of(dk, block.lane, key_head, begin, end), ds, q_rows, 1, e.scale);
    }
  }
};

}  // namespace

Var softmax_window(Tape& tape, const SoftmaxWindowInput& in, const Layout& layout) {
  const OpScope op_scope("softmax window");
  const Extents e(in, layout);
  const bool keep = tape.needs({&in.q, &in.k, &in.v});
  const std::vector<QueryBlock> blocks = query_blocks(e, in, layout);
  const bool padded = !layout.lengths.empty();
  Tensor y =
      padded ? Tensor::zeros({e.batch, e.length, e.heads, e.value}) : Tensor({e.batch, e.length, e.heads, e.value});
  const Tensor log_sum = keep ? Tensor({e.batch, e.heads, e.length}) : Tensor{};
  const Index jobs = static_cast<Index>(blocks.size()) * e.heads;
#pragma omp parallel
  {
    std::vector<Real> tile(static_cast<std::size_t>(kQueries * kKeys));
#pragma omp for schedule(dynamic)
    for (Index job = 0; job < jobs; ++job) {
      const QueryBlock& block = blocks[static_cast<std::size_t>(job / e.heads)];
      const Index head = job % e.heads;
      forward_block(block, rows_of(in.q.value(), block.lane, head, block.begin, block.end), in.k.value(), in.v.value(),
                    head / e.groups(), rows_of(y, block.lane, head, block.begin, block.end),
                    keep ? log_sum.data() + (block.lane * e.heads + head) * e.length : nullptr, e, tile);
    }
  }
  Backward backward{e, blocks, in.q.value(), in.k.value(), in.v.value(), y, log_sum};
  return tape.record(std::move(y), {&in.q, &in.k, &in.v},
                     [backward = std::move(backward), padded, dq = in.q.gradient(), dk = in.k.gradient(),
                      dv = in.v.gradient()](const Tensor& dy) {
                       const Tensor gq = padded ? Tensor::zeros(backward.q.shape()) : Tensor(backward.q.shape());
                       const Tensor gk = Tensor::zeros(backward.k.shape()), gv = Tensor::zeros(backward.v.shape());
                       backward.run(dy, gq, gk, gv);
                       add_gradient(dq, gq);
                       add_gradient(dk, gk);
                       add_gradient(dv, gv);
                     });
}

void softmax_window_step(const Real* q, Matrix k, Matrix v, Real scale, Real* y, Real* scores) {
  for (Index s = 0; s < k.rows; ++s) scores[s] = kernels::dot(q, k.row(s), k.cols);
  const Real highest = scale * kernels::max(scores, k.rows);
  const Real total = kernels::exp_scaled_sum(scores, scores, scale, highest, k.rows);
  kernels::fill(y, 0, v.cols);
  for (Index s = 0; s < v.rows; ++s) kernels::axpy(y, scores[s] / total, v.row(s), v.cols);
}

}  // namespace quipu::inline QUIPU_REAL_NS
