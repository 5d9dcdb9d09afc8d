#include "scan/token_shift.h"

#include <algorithm>

#include "base/blocks.h"
#include "grad/ops_linear.h"
#include "tensor/blend.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kRows = 64;  ///< a thread's piece of work

/// Where the token before a row stands: its row, or one of these.
enum Before : Index { kNothing = -1, kCarried = -2, kPadding = -3 };

std::vector<Index> rows_before(const Layout& layout) {
  std::vector<Index> before(static_cast<std::size_t>(layout.batch * layout.length), kPadding);
  for (Index b = 0; b < layout.batch; ++b)
    for (const Span& span : layout.spans(b))
      for (Index t = span.begin; t < span.end; ++t) {
        const Index row = b * layout.length + t;
        before[static_cast<std::size_t>(row)] = t > span.begin ? row - 1 : span.fresh ? kNothing : kCarried;
      }
  return before;
}

/// The rows of a token and of the one before it, as blend's a and b.
struct Pair {
  const Real *a, *b;
};

/// What the two directions share: the input and who stands before whom.
struct Shift {
  Index length, dim;
  ShiftTowards towards;
  Tensor x, last;
  std::vector<Index> before;
  std::vector<Index> ends;  ///< of each lane, its last row; -1: none
  std::vector<Real> nothing;
  std::vector<Tensor> weights, offsets;

  Index rows() const { return x.count() / dim; }
  Real* row(const Tensor& of, Index r) const { return of.data() + r * dim; }
  Index before_row(Index r) const { return before[static_cast<std::size_t>(r)]; }
  const Real* offset(std::size_t j, Index r) const { return offsets[j].defined() ? row(offsets[j], r) : nullptr; }

  Pair pair(Index r) const {
    const Index at = before_row(r);
    const Real* previous = nothing.data();
    if (at >= 0) previous = row(x, at);
    if (at == kCarried && last.defined()) previous = row(last, r / length);
    return towards == ShiftTowards::current ? Pair{previous, row(x, r)} : Pair{row(x, r), previous};
  }

  void forward(const std::vector<Tensor>& y) const {
    for_blocks(rows(), kRows, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) {
        if (before_row(r) == kPadding) {
          for (const Tensor& one : y) kernels::fill(row(one, r), 0, dim);
          continue;
        }
        const auto [a, b] = pair(r);
        for (std::size_t j = 0; j < y.size(); ++j)
          kernels::blend(row(y[j], r), a, b, weights[j].data(), offset(j, r), dim);
      }
    });
  }

  Tensor last_tokens() const {
    Tensor out({static_cast<Index>(ends.size()), dim});
    for (std::size_t b = 0; b < ends.size(); ++b) {
      const auto lane = static_cast<Index>(b);
      if (ends[b] >= 0)
        std::copy_n(row(x, ends[b]), dim, row(out, lane));
      else if (last.defined())
        std::copy_n(row(last, lane), dim, row(out, lane));
      else
        std::fill_n(row(out, lane), dim, Real{0});
    }
    return out;
  }
};

/// Gradients of a shift: `sums` has, of each weight, a row for every block of tokens; undefined where none is wanted.
struct ShiftGradients {
  Tensor x, last;
  std::vector<Tensor> sums, offsets;
};

/// Adds row r's gradient to its token's and to the previous one's row; either may be null.
void add_row(const Shift& s, std::span<const Tensor> dy, Index r, Real* own, Real* previous) {
  const bool to_current = s.towards == ShiftTowards::current;
  for (std::size_t j = 0; j < s.weights.size(); ++j)
    if (dy[j].defined())
      kernels::blend_backward(to_current ? previous : own, to_current ? own : previous, s.row(dy[j], r),
                              s.weights[j].data(), s.offset(j, r), s.dim);
}

void add_weight_row(const Shift& s, std::span<const Tensor> dy, Index r, const ShiftGradients& to) {
  const auto [a, b] = s.pair(r);
  for (std::size_t j = 0; j < s.weights.size(); ++j)
    if (dy[j].defined())
      kernels::blend_weight_gradient(s.row(to.sums[j], r / kRows),
                                     to.offsets[j].defined() ? s.row(to.offsets[j], r) : nullptr, s.row(dy[j], r), a, b,
                                     s.dim);
}

/// Tokens [begin, end): all that goes into their rows of dx. The last one's successor may stand in the next block.
void backward_block(const Shift& s, std::span<const Tensor> dy, Index begin, Index end, const ShiftGradients& to) {
  for (const Tensor& sum : to.sums) kernels::fill(s.row(sum, begin / kRows), 0, s.dim);
  kernels::fill(s.row(to.x, begin), 0, (end - begin) * s.dim);
  for (Index r = begin; r < end; ++r) {
    const Index at = s.before_row(r);
    if (at == kPadding) {
      for (const Tensor& offset : to.offsets)
        if (offset.defined()) kernels::fill(s.row(offset, r), 0, s.dim);
      continue;
    }
    Real* previous = at >= begin ? s.row(to.x, at) : nullptr;
    if (at == kCarried && to.last.defined()) previous = s.row(to.last, r / s.length);
    add_row(s, dy, r, s.row(to.x, r), previous);
    add_weight_row(s, dy, r, to);
  }
  if (end < s.rows() && s.before_row(end) == end - 1) add_row(s, dy, end, nullptr, s.row(to.x, end - 1));
}

void add_last_gradient(const Shift& s, const Tensor& dlast, const ShiftGradients& to) {
  for (std::size_t b = 0; b < s.ends.size(); ++b) {
    const Real* const from = s.row(dlast, static_cast<Index>(b));
    if (s.ends[b] >= 0)
      kernels::add_into(s.row(to.x, s.ends[b]), from, s.dim);
    else if (to.last.defined())
      kernels::add_into(s.row(to.last, static_cast<Index>(b)), from, s.dim);
  }
}

/// Gradient slots of what a shift reads.
struct Slots {
  std::shared_ptr<Gradient> x, last;
  std::vector<std::shared_ptr<Gradient>> weights, offsets;
};

void backward(const Shift& s, std::span<const Tensor> dy, const Tensor& dlast, const Slots& slots) {
  ShiftGradients to{Tensor(s.x.shape()), slots.last ? Tensor::zeros(s.last.shape()) : Tensor(), {}, {}};
  const Index blocks = (s.rows() + kRows - 1) / kRows;
  for (std::size_t j = 0; j < s.weights.size(); ++j) {
    to.sums.emplace_back(Shape{blocks, s.dim});
    to.offsets.push_back(slots.offsets[j] ? Tensor(s.x.shape()) : Tensor());
    if (!dy[j].defined()) to.offsets.back() = Tensor();
  }
  for_blocks(s.rows(), kRows, [&](Index begin, Index end) { backward_block(s, dy, begin, end, to); });
  if (dlast.defined()) add_last_gradient(s, dlast, to);
  add_gradient(slots.x, to.x);
  if (slots.last) slots.last->add(to.last);
  for (std::size_t j = 0; j < s.weights.size(); ++j) {
    if (!dy[j].defined()) continue;
    if (slots.offsets[j]) slots.offsets[j]->add(to.offsets[j]);
    if (!slots.weights[j]) continue;
    Tensor dw = Tensor::zeros({s.dim});
    add_column_sums(dw.data(), to.sums[j].matrix());
    slots.weights[j]->add(dw);
  }
}

Shift checked(const Var& x, const Var& last, ShiftTowards towards, const std::vector<ShiftWeight>& weights,
              const Layout& layout) {
  const Index dim = x.extent(-1);
  require_shape("token shift: x", x.shape(), {layout.batch, layout.length, dim});
  if (last.defined()) require_shape("token shift: last token", last.shape(), {layout.batch, dim});
  Shift s{layout.length, dim, towards, x.value(), last.value(), rows_before(layout), {}, {}, {}, {}};
  s.nothing.assign(static_cast<std::size_t>(dim), 0);
  for (const ShiftWeight& w : weights) {
    if (w.weight.value().count() != dim)
      throw ShapeError("token shift: {} weights for {} channels", w.weight.value().count(), dim);
    if (w.offset.defined()) require_shape("token shift: offset", w.offset.shape(), x.shape());
    s.weights.push_back(w.weight.value());
    s.offsets.push_back(w.offset.value());
  }
  for (Index b = 0; b < layout.batch; ++b) {
    const Index valid = layout.lane_length(b);
    s.ends.push_back(valid > 0 ? b * layout.length + valid - 1 : -1);
  }
  return s;
}

}  // namespace

TokenShift token_shift(Tape& tape, const Var& x, const Var& last, ShiftTowards towards,
                       const std::vector<ShiftWeight>& weights, const Layout& layout) {
  const OpScope op_scope("token shift");
  Shift s = checked(x, last, towards, weights, layout);
  std::vector<Tensor> out;
  for (std::size_t j = 0; j < weights.size(); ++j) out.emplace_back(x.shape());
  s.forward(out);
  out.push_back(s.last_tokens());

  Slots slots{x.gradient(), last.gradient(), {}, {}};
  const Var* wanting = &x;  // any input that wants a gradient
  for (const ShiftWeight& w : weights) {
    slots.weights.push_back(w.weight.gradient());
    slots.offsets.push_back(w.offset.gradient());
    for (const Var* var : {&w.weight, &w.offset})
      if (var->wants_gradient()) wanting = var;
  }
  std::vector<Var> vars = tape.record_all(std::move(out), {&x, &last, wanting},
                                          [s = std::move(s), slots = std::move(slots)](std::span<Tensor> dout) {
                                            backward(s, dout.first(dout.size() - 1), dout.back(), slots);
                                          });
  TokenShift result{{}, vars.back()};
  vars.pop_back();
  result.mixed = std::move(vars);
  return result;
}

void token_shift_step(Matrix y, Matrix x, const Tensor& last, ShiftTowards towards, const Tensor& weight,
                      Matrix offset) {
  for (Index b = 0; b < x.rows; ++b) {
    const Real *const current = x.row(b), *const previous = last.data() + b * x.cols;
    const bool to_current = towards == ShiftTowards::current;
    kernels::blend(y.row(b), to_current ? previous : current, to_current ? current : previous, weight.data(),
                   offset.data == nullptr ? nullptr : offset.row(b), x.cols);
  }
}

void keep_token(Tensor& last, Matrix x) {
  for (Index b = 0; b < x.rows; ++b) std::copy_n(x.row(b), x.cols, last.data() + b * x.cols);
}

}  // namespace quipu::inline QUIPU_REAL_NS
