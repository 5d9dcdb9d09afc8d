#include <algorithm>

#include "base/blocks.h"
#include "grad/ops_linear.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kTokens = 128;

/// Rows of head h of x [tokens H,width].
Matrix head_of(Matrix x, Index heads, Index h) { return {x.data + h * x.cols, x.rows / heads, x.cols, heads * x.cols}; }

Matrix head_weight(const Tensor& weight, Index h) {
  const Index out = weight.extent(1), in = weight.extent(2);
  return {weight.data() + h * out * in, out, in, in};
}

/// fn(h, first token, last) for blocks of tokens of every head, in parallel.
template <typename F>
void for_head_blocks(Index tokens, Index heads, F&& fn) {
  const Index blocks = (tokens + kTokens - 1) / kTokens;
  for_blocks(blocks * heads, 1, [&](Index job, Index) {
    const Index begin = job / heads * kTokens;
    fn(job % heads, begin, std::min(tokens, begin + kTokens));
  });
}

}  // namespace

void linear_heads_into(Matrix y, Matrix x, const Tensor& weight, const Tensor& bias) {
  const Index heads = weight.extent(0);
  if (x.cols != weight.extent(2) || y.cols != weight.extent(1) || x.rows % heads != 0)
    throw ShapeError("linear heads: {} rows of width {} and outputs of width {} for a weight of shape {}", x.rows,
                     x.cols, y.cols, weight.shape().text());
  for_head_blocks(x.rows / heads, heads, [&](Index h, Index begin, Index end) {
    const Matrix out = head_of(y, heads, h).slice(begin, end), in = head_of(x, heads, h).slice(begin, end);
    if (bias.defined())
      for (Index r = 0; r < out.rows; ++r) std::copy_n(bias.data() + h * y.cols, y.cols, out.row(r));
    const Real beta = bias.defined() ? Real{1} : Real{0};
    if (in.rows == 1)
      blas::multiply_vector(out.data, head_weight(weight, h), in.data, beta);
    else
      blas::multiply_bt(out, in, head_weight(weight, h), beta);
  });
}

Var linear_heads(Tape& tape, const Var& x, const Var& weight, const Var& bias) {
  const OpScope op_scope("linear heads");
  const Index heads = weight.extent(0);
  Shape shape = x.shape();
  shape[-1] = weight.extent(1);
  Tensor y(shape);
  linear_heads_into(y.matrix(), x.value().matrix(), weight.value(), bias.value());
  return tape.record(std::move(y), {&x, &weight, &bias},
                     [x = x.value(), w = weight.value(), dx = x.gradient(), dw = weight.gradient(),
                      db = bias.gradient(), heads](const Tensor& dy) {
                       const Matrix g = dy.matrix(), in = x.matrix();
                       if (dx) {
                         Tensor out(x.shape());
                         for_head_blocks(in.rows / heads, heads, [&](Index h, Index begin, Index end) {
                           blas::multiply(head_of(out.matrix(), heads, h).slice(begin, end),
                                          head_of(g, heads, h).slice(begin, end), head_weight(w, h));
                         });
                         dx->add(std::move(out));
                       }
                       if (dw) {
                         Tensor out(w.shape());
                         for_blocks(heads, 1, [&](Index h, Index) {
                           blas::multiply_at(head_weight(out, h), head_of(g, heads, h), head_of(in, heads, h));
                         });
                         dw->add(std::move(out));
                       }
                       if (db) {
                         Tensor out = Tensor::zeros({heads, g.cols});
                         const Index width = heads * g.cols;
                         add_column_sums(out.data(), {g.data, g.rows / heads, width, width});
                         db->add(std::move(out));
                       }
                     });
}

}  // namespace quipu::inline QUIPU_REAL_NS
