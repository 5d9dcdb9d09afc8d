#include "grad/ops_broadcast.h"

#include <vector>

#include "base/blocks.h"
#include "grad/ops_linear.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kRows = 64;  // of a block

/// x without its last axis.

}  // namespace

Var scale_columns(Tape& tape, const Var& x, const Var& w) {
  const OpScope op_scope("scale columns");
  require_shape("scaled columns: w", w.shape(), {x.extent(-1)});
  const Index rows = x.shape().rows(), width = x.extent(-1);
  const auto product = [=](const Tensor& from, const Tensor& by) {
    Tensor y(from.shape());
    for_blocks(rows, kRows, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r)
        kernels::multiply(y.data() + r * width, from.data() + r * width, by.data(), width);
    });
    return y;
  };
  return tape.record(product(x.value(), w.value()), {&x, &w},
                     [=, x = x.value(), w = w.value(), dx = x.gradient(), dw = w.gradient()](const Tensor& dy) {
                       if (dx) dx->add(product(dy, w));
                       if (!dw) return;
                       Tensor terms(x.shape());
                       for_blocks(rows * width, kElementBlock, [&](Index begin, Index end) {
                         kernels::multiply(terms.data() + begin, x.data() + begin, dy.data() + begin, end - begin);
                       });
                       const auto [target, beta] = dw->target(1, width);
                       if (beta == 0) kernels::fill(target.data, 0, width);
                       add_column_sums(target.data, {terms.data(), rows, width, width});
                     });
}

Var add_scaled_heads(Tape& tape, const Var& a, const Var& x, const Var& w) {
  const OpScope op_scope("add scaled heads");
  require_shape("scaled heads: x", x.shape(), a.shape());
  require_shape("scaled heads: w", w.shape(), {x.extent(-2)});
  const Index heads = x.extent(-2), width = x.extent(-1), rows = x.shape().rows();
  Tensor y = a.value().clone();
  for_blocks(rows, kRows, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      kernels::axpy(y.data() + r * width, w.value().data()[r % heads], x.value().data() + r * width, width);
  });
  return tape.record(
      std::move(y), {&a, &x, &w},
      [=, x = x.value(), w = w.value(), da = a.gradient(), dx = x.gradient(), dw = w.gradient()](const Tensor& dy) {
        Tensor d(x.shape()), dots({rows});
        for_blocks(rows, kRows, [&](Index begin, Index end) {
          for (Index r = begin; r < end; ++r) {
            const Real* const g = dy.data() + r * width;
            kernels::scale(d.data() + r * width, w.data()[r % heads], g, width);
            dots.data()[r] = kernels::dot(x.data() + r * width, g, width);
          }
        });
        add_gradient(dx, d);
        if (dw) {
          const auto [target, beta] = dw->target(1, heads);
          if (beta == 0) kernels::fill(target.data, 0, heads);
          add_column_sums(target.data, {dots.data(), rows / heads, heads, heads});
        }
        add_gradient(da, dy);
      });
}

}  // namespace quipu::inline QUIPU_REAL_NS
