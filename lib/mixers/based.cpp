#include <cmath>

#include "base/blocks.h"
#include "grad/linear_layer.h"
#include "mixers/kernel_memory.h"
#include "mixers/registry.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// The features of the exponential's Taylor series up to its square, phi(q) phi(k) = 1 + s + s^2 / 2 with
/// s = q k / sqrt(F):  1, x_i / F^(1/4), x_i^2 / sqrt(2 F), and x_i x_j / sqrt(F) for j < i. Each product stands once,
/// which keeps the kernel and halves the published features.
class TaylorFeatures {
 public:
  explicit TaylorFeatures(Index width = 1)
      : width_(width),
        linear_(static_cast<Real>(std::pow(static_cast<double>(width), -0.25))),
        product_(static_cast<Real>(std::pow(static_cast<double>(width), -0.5))),
        square_(static_cast<Real>(std::pow(2.0 * static_cast<double>(width), -0.5))) {}

  Index count() const { return 1 + width_ + width_ * (width_ + 1) / 2; }

  /// x: [F];  y: [count].
  void row(Real* y, const Real* x) const {
    y[0] = 1;
    kernels::scale(y + 1, linear_, x, width_);
    Real* at = y + 1 + width_;
    for (Index i = 0; i < width_; at += ++i) {
      kernels::scale(at, product_ * x[i], x, i);
      at[i] = square_ * x[i] * x[i];
    }
  }

  /// dx, from the gradient of the features.
  void row_backward(Real* dx, const Real* dy, const Real* x) const {
    kernels::scale(dx, linear_, dy + 1, width_);
    const Real* at = dy + 1 + width_;
    for (Index i = 0; i < width_; at += ++i) {
      dx[i] += product_ * kernels::dot(at, x, i) + 2 * square_ * at[i] * x[i];
      kernels::axpy(dx, product_ * x[i], at, i);
    }
  }

  /// x: [..,F];  y: [..,count].
  Var operator()(Tape& tape, const Var& x) const {
    const OpScope op_scope("taylor features");
    Shape shape = x.shape();
    shape[-1] = count();
    const Tensor y(shape);
    const Index rows = shape.rows();
    for_blocks(rows, kRows, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) row(y.data() + r * count(), x.value().data() + r * width_);
    });
    return tape.record(y, {&x}, [features = *this, x = x.value(), slot = x.gradient(), rows](const Tensor& dy) {
      const Tensor dx(x.shape());
      for_blocks(rows, kRows, [&](Index begin, Index end) {
        for (Index r = begin; r < end; ++r)
          features.row_backward(dx.data() + r * features.width_, dy.data() + r * features.count(),
                                x.data() + r * features.width_);
      });
      slot->add(dx);
    });
  }

 private:
  static constexpr Index kRows = 128;  // worked off by a thread at once

  Index width_;
  Real linear_, product_, square_;
};

/// Based's linear attention: the exponential of softmax attention replaced by its Taylor series, on narrow keys.
///   S_t = S_{t-1} + phi(k_t) v_t^T,  z_t = z_{t-1} + phi(k_t),  o_t = phi(q_t) S_t / (phi(q_t) z_t + eps);  y = W_o o,
/// q and k of F numbers a head. State: S [B,H,M,V], z [B,H,M], M = 1 + F + F (F + 1) / 2. Source: arXiv:2402.18668.
class Based final : public Mixer {
 public:
  explicit Based(const MixerSpec& spec) : dim_(spec.dim), heads_(checked_heads(spec, 16)), width_(dim_ / heads_) {
    feature_dim_ = spec.options.integer("feature_dim", 16, 1, "width of the keys of a head (F)");
    features_ = TaylorFeatures(feature_dim_);
    q_ = Linear(heads_ * feature_dim_, dim_, normal(0.02));
    k_ = Linear(heads_ * feature_dim_, dim_, normal(0.02));
    v_ = Linear(dim_, dim_, normal(0.02));
    o_ = Linear(dim_, dim_, normal(0.02));
    memory_ = KernelMemory(heads_, features_.count(), width_, {.eps = 1e-12});
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Var y = memory_(tape,
                          {.q = features_(tape, split_heads(q_(tape, x), heads_)),
                           .k = features_(tape, split_heads(k_(tape, x), heads_)),
                           .v = split_heads(v_(tape, x), heads_)},
                          context.layout, state);
    return o_(tape, join_heads(y));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows, rows = lanes * heads_;
    Scratch& scratch = *context.scratch;
    const Matrix q = scratch.take(lanes, heads_ * feature_dim_), k = scratch.take(lanes, heads_ * feature_dim_);
    const Matrix queries = scratch.take(rows, features_.count()), keys = scratch.take(rows, features_.count());
    const Matrix v = scratch.take(lanes, dim_), o = scratch.take(lanes, dim_);
    q_.step(q, x), k_.step(k, x), v_.step(v, x);
    for (Index i = 0; i < rows; ++i) {
      features_.row(queries.row(i), q.data + i * feature_dim_);
      features_.row(keys.row(i), k.data + i * feature_dim_);
    }
    memory_.step(o, {.q = queries, .k = keys, .v = v}, state);
    o_.step(y, o);
  }

  State initial_state(Index lanes) const override {
    State state;
    memory_.add_state(state, lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    k_.visit(visitor, "k_proj");
    v_.visit(visitor, "v_proj");
    o_.visit(visitor, "o_proj");
  }

  double mixing_cost(Index) const override {
    return memory_.cost() + static_cast<double>(2 * heads_ * features_.count());
  }
  BlockDefaults block() const override { return {.positions = "sinusoidal", .embedding = embedding_beside_sinusoids}; }

 private:
  Index dim_, heads_, width_, feature_dim_ = 0;
  TaylorFeatures features_;
  Linear q_, k_, v_, o_;
  KernelMemory memory_;
};

}  // namespace

std::unique_ptr<Mixer> make_based(const MixerSpec& spec) { return std::make_unique<Based>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
