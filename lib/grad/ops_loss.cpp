#include "grad/ops_loss.h"

#include <algorithm>
#include <cmath>

#include "grad/ops_linear.h"
#include "tensor/kernels.h"
#include "tensor/linear_products.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kSliceRows = 512;

/// Turns a row of logits into the gradient of its smoothed loss, times `scale` (where `gradient`); returns the nll and
/// the smoothed loss.
std::pair<double, double> score_row(Real* logits, Index vocab, std::int32_t target, double smoothing, double scale,
                                    bool gradient) {
  const Real highest = kernels::max(logits, vocab);
  const double at_target = logits[target];
  const double sum_logits = smoothing == 0 ? 0 : static_cast<double>(kernels::sum(logits, vocab));
  const double total = kernels::exp_scaled_sum(logits, logits, 1, highest, vocab);
  const double log_total = std::log(total) + static_cast<double>(highest);
  const double nll = log_total - at_target;
  const auto n = static_cast<double>(vocab);
  const double smoothed = (1 - smoothing) * nll + smoothing * (log_total - sum_logits / n);
  if (gradient) {
    kernels::scale(logits, static_cast<Real>(scale / total), logits, vocab);
    if (smoothing != 0)
      for (Index i = 0; i < vocab; ++i) logits[i] -= static_cast<Real>(scale * smoothing / n);
    logits[target] -= static_cast<Real>(scale * (1 - smoothing));
  }
  return {nll, smoothed};
}

void check_targets(std::span<const std::int32_t> targets, Index rows, Index vocab) {
  if (static_cast<Index>(targets.size()) != rows)
    throw ShapeError("loss: {} targets for {} rows", targets.size(), rows);
  for (const std::int32_t target : targets)
    if (target != kNoTarget && (target < 0 || target >= vocab))
      throw InputError(
          "loss: token id {} is outside the vocabulary (size {}); convert the text with the model's tokenizer", target,
          vocab);
}

struct Gradients {
  Tensor hidden, weight, bias;
};

/// The rows that are scored, in slices: where all are, the rows themselves, else copies of them side by side, so that
/// nothing is projected that is not scored.
class ScoredRows {
 public:
  ScoredRows(Matrix x, std::span<const std::int32_t> targets) : x_(x) {
    for (std::size_t i = 0; i < targets.size(); ++i)
      if (targets[i] != kNoTarget) rows_.push_back(static_cast<Index>(i));
    if (!all()) gathered_ = Tensor({std::min(count(), kSliceRows), x.cols});
  }

  Index count() const { return static_cast<Index>(rows_.size()); }
  /// The row of the i-th scored one.
  Index operator[](Index i) const { return rows_[static_cast<std::size_t>(i)]; }

  Matrix slice(Index begin, Index end) {
    if (all()) return x_.slice(begin, end);
    for (Index i = begin; i < end; ++i) std::copy_n(x_.row((*this)[i]), x_.cols, gathered_.matrix().row(i - begin));
    return gathered_.matrix().slice(0, end - begin);
  }
  /// Where the gradients of the scored rows begin .. go first: their place in dx, or rows side by side in `room`.
  Matrix gradient_rows(Matrix dx, Tensor& room, Index begin, Index count) const {
    if (all()) return dx.slice(begin, begin + count);
    room = Tensor({count, dx.cols});
    return room.matrix();
  }
  /// Takes them from there to their places; the other rows of dx are left as they are.
  void put_back(Matrix dx, Matrix rows, Index begin) const {
    if (all()) return;
    for (Index i = 0; i < rows.rows; ++i) std::copy_n(rows.row(i), dx.cols, dx.row((*this)[begin + i]));
  }

 private:
  bool all() const { return count() == x_.rows; }

  Matrix x_;
  std::vector<Index> rows_;
  Tensor gathered_;
};

/// Of one slice of logits (already their own gradient).
void slice_gradients(Matrix dlogits, Matrix hidden, const ScoredRows& scored, const Tensor& weight, Index begin,
                     Gradients& d) {
  std::optional<GradientTarget> dx, dw;
  Tensor room;
  if (d.hidden.defined()) dx = {scored.gradient_rows(d.hidden.matrix(), room, begin, dlogits.rows)};
  if (d.weight.defined()) dw = {d.weight.matrix(), begin > 0};
  linear_gradients(dx, dw, dlogits, LinearInput(hidden, weight.extent(0)), weight.matrix());
  if (dx) scored.put_back(d.hidden.matrix(), dx->to, begin);
  if (d.bias.defined()) add_column_sums(d.bias.data(), dlogits);
}

/// The output projection: `weight` as the products take it, `trained` the same on the tape (undefined: a constant).
struct Projection {
  Weight weight;
  Var trained, bias;
};

LossOutput projected_loss(Tape& tape, const Var& hidden, const Projection& by, std::span<const std::int32_t> targets,
                          const LossOptions& options) {
  const OpScope op_scope("head and loss");
  const auto& [projection, weight, bias] = by;
  const Matrix x = hidden.value().matrix();
  const Index rows = x.rows, vocab = projection.out();
  check_targets(targets, rows, vocab);
  ScoredRows scored(x, targets);
  LossOutput out;
  out.nll_nats.assign(targets.size(), 0);
  out.tokens = scored.count();
  const double divisor = options.divisor > 0 ? options.divisor : static_cast<double>(std::max<Index>(out.tokens, 1));

  const bool gradient = tape.needs({&hidden, &weight, &bias}), partial = out.tokens < rows;
  Gradients d;
  if (gradient && hidden.wants_gradient()) d.hidden = partial ? Tensor::zeros(hidden.shape()) : Tensor(hidden.shape());
  if (gradient && weight.wants_gradient())
    d.weight = out.tokens == 0 ? Tensor::zeros(weight.shape()) : Tensor(weight.shape());
  if (gradient && bias.wants_gradient()) d.bias = Tensor::zeros(bias.shape());

  // With a gradient each slice passes over that of the weight: then long ones pay.
  const Index slice_rows = gradient ? kSliceRows : logit_rows(vocab);
  const Tensor buffer({std::min(out.tokens, slice_rows), vocab});
  std::vector<double> smoothed(targets.size(), 0);
  for (Index begin = 0; begin < out.tokens; begin += slice_rows) {
    const Index end = std::min(out.tokens, begin + slice_rows);
    const Matrix logits = buffer.matrix().slice(0, end - begin), slice = scored.slice(begin, end);
    multiply_weight(logits, slice, projection, bias.defined() ? bias.value().data() : nullptr);
#pragma omp parallel for schedule(static)
    for (Index r = begin; r < end; ++r) {
      const auto i = static_cast<std::size_t>(scored[r]);
      std::tie(out.nll_nats[i], smoothed[i]) =
          score_row(logits.row(r - begin), vocab, targets[i], options.smoothing, 1 / divisor, gradient);
    }
    if (gradient) slice_gradients(logits, slice, scored, weight.value(), begin, d);
  }

  double loss_sum = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) out.nll_sum_nats += out.nll_nats[i], loss_sum += smoothed[i];
  out.loss =
      tape.record(Tensor::full({1}, static_cast<Real>(loss_sum / divisor)), {&hidden, &weight, &bias},
                  [d, dh = hidden.gradient(), dw = weight.gradient(), db = bias.gradient()](const Tensor& dy) {
                    const Real factor = dy.data()[0];
                    for (const auto& [slot, gradient_of] : {std::pair{dh, d.hidden}, {dw, d.weight}, {db, d.bias}}) {
                      if (!slot) continue;
                      if (factor != 1)
                        kernels::scale(gradient_of.data(), factor, gradient_of.data(), gradient_of.count());
                      slot->add(gradient_of);
                    }
                  });
  return out;
}

}  // namespace

LossOutput projected_cross_entropy(Tape& tape, const Var& hidden, const Var& weight, const Var& bias,
                                   std::span<const std::int32_t> targets, const LossOptions& options) {
  return projected_loss(tape, hidden, {weight.value(), weight, bias}, targets, options);
}

LossOutput projected_cross_entropy(Tape& tape, const Var& hidden, const Weight& weight,
                                   std::span<const std::int32_t> targets, const LossOptions& options, const Var& bias) {
  if (tape.needs({&hidden, &bias})) throw InternalError("a gradient through a matrix that is not trained");
  return projected_loss(tape, hidden, {weight, {}, bias}, targets, options);
}

}  // namespace quipu::inline QUIPU_REAL_NS
