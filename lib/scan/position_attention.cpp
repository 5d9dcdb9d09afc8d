#include "scan/position_attention.h"

#include <algorithm>

#include "scan/head_rows.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kTokens = 64;  ///< rows of a tile

struct Extents {
  Index batch, length, past, heads, positions, key, value;
  bool by_table, by_token;

  Extents(const PositionAttentionInput& in, const Layout& layout) {
    batch = layout.batch, length = layout.length, past = in.v.extent(1) - length;
    heads = in.v.extent(2), value = in.v.extent(3);
    by_table = in.table.defined();
    by_token = !by_table && in.q.shape().rank() == 4;
    positions = by_table ? in.table.extent(1) : in.keys.extent(1);
    key = by_table ? 0 : in.keys.extent(2);
    require_shape("position attention: v", in.v.shape(), {batch, past + length, heads, value});
    if (by_table) {
      require_shape("position attention: table", in.table.shape(), {heads, positions, positions});
      return;
    }
    require_shape("position attention: keys", in.keys.shape(), {heads, positions, key});
    require_shape("position attention: q", in.q.shape(),
                  by_token ? Shape{batch, length, heads, key} : Shape{heads, positions, key});
    if (in.bias.defined()) require_shape("position attention: bias", in.bias.shape(), {heads, positions});
  }
};

/// Tokens [begin, end) of one document of a lane: the first stands at `position`, and its document's first value is
/// row `first` of the values.
struct Block {
  Index lane, begin, end, position, first;

  Index rows() const { return end - begin; }
  Index seen() const { return position + rows(); }  ///< by the last token
};

std::vector<Block> all_blocks(const Extents& e, const std::vector<Index>& past, const Layout& layout) {
  std::vector<Block> blocks;
  for (Index b = 0; b < e.batch; ++b)
    for (const Span& span : layout.spans(b)) {
      const Index before = span.fresh || past.empty() ? 0 : past[static_cast<std::size_t>(b)];
      const Index first = e.past + span.begin - before;
      for (Index t = span.begin; t < span.end; t += kTokens)
        blocks.push_back({b, t, std::min(span.end, t + kTokens), before + t - span.begin, first});
    }
  return blocks;
}

/// The arrays of an attention; the same struct holds values and gradients.
struct Arrays {
  Tensor table, q, keys, bias, v, y;

  Matrix keys_of(Index head, Index count, const Extents& e) const {
    return {keys.data() + head * e.positions * e.key, count, e.key, e.key};
  }
  Matrix queries_of(Index head, const Block& block, const Extents& e) const {
    if (e.by_token) return head_rows(q, e.heads, e.key, block.lane, head, {block.begin, block.end, false});
    return {q.data() + (head * e.positions + block.position) * e.key, block.rows(), e.key, e.key};
  }
  Matrix values_of(Index head, const Block& block, const Extents& e) const {
    return head_rows(v, e.heads, e.value, block.lane, head, {block.first, block.first + block.seen(), false});
  }
  Matrix outputs_of(Index head, const Block& block, const Extents& e) const {
    return head_rows(y, e.heads, e.value, block.lane, head, {block.begin, block.end, false});
  }
  Real* table_row(Index head, Index position, const Extents& e) const {
    return table.data() + (head * e.positions + position) * e.positions;
  }
};

/// The weights of a block's tokens over the positions that the last one sees; 0 beyond each token's own.
void weights_of(Matrix weights, const Arrays& x, Index head, const Block& block, const Extents& e) {
  if (!e.by_table) blas::multiply_bt(weights, x.queries_of(head, block, e), x.keys_of(head, weights.cols, e));
  for (Index r = 0; r < weights.rows; ++r) {
    Real* const row = weights.row(r);
    const Index seen = block.position + r + 1;
    if (e.by_table) std::copy_n(x.table_row(head, block.position + r, e), seen, row);
    if (x.bias.defined()) kernels::add_into(row, x.bias.data() + head * e.positions, seen);
    kernels::softmax_row(row, row, 1, seen);
    std::fill(row + seen, row + weights.cols, Real{0});
  }
}

Matrix tile_of(std::vector<Real>& storage, const Block& block) {
  return {storage.data(), block.rows(), block.seen(), block.seen()};
}

struct Backward {
  Extents e;
  std::vector<Block> blocks;
  Arrays x;

  /// Adds to the gradients of d, which also holds that of y. Heads share nothing but lanes: one thread does a head.
  void run(const Arrays& d) const {
#pragma omp parallel
    {
      std::vector<Real> tile(static_cast<std::size_t>(kTokens * e.positions)), dtile(tile.size());
#pragma omp for schedule(dynamic)
      for (Index head = 0; head < e.heads; ++head)
        for (const Block& block : blocks) backward_block(block, head, d, tile_of(tile, block), tile_of(dtile, block));
    }
  }

 private:
  void backward_block(const Block& block, Index head, const Arrays& d, Matrix weights, Matrix dlogits) const {
    weights_of(weights, x, head, block, e);
    const Matrix dy = d.outputs_of(head, block, e);
    blas::multiply_bt(dlogits, dy, x.values_of(head, block, e));
    blas::multiply_at(d.values_of(head, block, e), weights, dy, 1);
    for (Index r = 0; r < dlogits.rows; ++r) {
      Real* const row = dlogits.row(r);
      const Index seen = block.position + r + 1;
      kernels::softmax_row_backward(row, row, weights.row(r), 1, seen);
      std::fill(row + seen, row + dlogits.cols, Real{0});
      if (e.by_table) kernels::add_into(d.table_row(head, block.position + r, e), row, seen);
      if (d.bias.defined()) kernels::add_into(d.bias.data() + head * e.positions, row, seen);
    }
    if (e.by_table) return;
    blas::multiply(d.queries_of(head, block, e), dlogits, x.keys_of(head, dlogits.cols, e), 1);
    blas::multiply_at(d.keys_of(head, dlogits.cols, e), dlogits, x.queries_of(head, block, e), 1);
  }
};

}  // namespace

Var position_attention(Tape& tape, const PositionAttentionInput& in, const Layout& layout) {
  const OpScope op_scope("position attention");
  const Extents e(in, layout);
  std::vector<Block> blocks = all_blocks(e, in.past, layout);
  const Arrays x{in.table.value(), in.q.value(), in.keys.value(),
                 in.bias.value(),  in.v.value(), Tensor({e.batch, e.length, e.heads, e.value})};
  const Index jobs = static_cast<Index>(blocks.size()) * e.heads;
#pragma omp parallel
  {
    std::vector<Real> tile(static_cast<std::size_t>(kTokens * e.positions));
#pragma omp for schedule(dynamic)
    for (Index job = 0; job < jobs; ++job) {
      const Block& block = blocks[static_cast<std::size_t>(job / e.heads)];
      const Matrix weights = tile_of(tile, block);
      weights_of(weights, x, job % e.heads, block, e);
      blas::multiply(x.outputs_of(job % e.heads, block, e), weights, x.values_of(job % e.heads, block, e));
    }
  }
  fill_padding(x.y, layout, 0);
  return tape.record(
      x.y, {&in.table, &in.q, &in.keys, &in.bias, &in.v},
      [backward = Backward{e, std::move(blocks), x}, dtable = in.table.gradient(), dq = in.q.gradient(),
       dkeys = in.keys.gradient(), dbias = in.bias.gradient(), dv = in.v.gradient()](const Tensor& dy) {
        const auto zeros = [](const Tensor& like) { return like.defined() ? Tensor::zeros(like.shape()) : Tensor{}; };
        const Arrays& kept = backward.x;
        const Arrays d{zeros(kept.table), zeros(kept.q), zeros(kept.keys), zeros(kept.bias), zeros(kept.v), dy};
        backward.run(d);
        add_gradient(dtable, d.table);
        add_gradient(dq, d.q);
        add_gradient(dkeys, d.keys);
        add_gradient(dbias, d.bias);
        add_gradient(dv, d.v);
      });
}

void position_attention_step(Real* logits, Matrix v, Real* y) {
  kernels::softmax_row(logits, logits, 1, v.rows);
  kernels::fill(y, 0, v.cols);
  for (Index s = 0; s < v.rows; ++s) kernels::axpy(y, logits[s], v.row(s), v.cols);
}

}  // namespace quipu::inline QUIPU_REAL_NS
