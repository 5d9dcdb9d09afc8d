#include <algorithm>
#include <array>
#include <functional>

#include "base/blocks.h"
#include "grad/linear_layer.h"
#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "mixers/heads.h"
#include "mixers/input_convs.h"
#include "mixers/registry.h"
#include "scan/outer_scan.h"
#include "tensor/bounded_gate.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kRowBlock = 64;

/// The lower bound of a layer's forget gates: beta = sum_{1 <= j <= layer} p_j [D], p = softmax over the layers of
/// logits [L,D]: nothing in the first layer, more and more up the stack. Leaves p in `shares` [L,D].
void lower_bound_into(Real* beta, Matrix shares, Matrix logits, Index layer) {
  const Index width = logits.cols;
  std::copy_n(logits.row(0), width, beta);
  for (Index j = 1; j < logits.rows; ++j)
    std::transform(beta, beta + width, logits.row(j), beta, [](Real a, Real b) { return std::max(a, b); });
  for (Index j = 0; j < logits.rows; ++j) kernels::exp_difference(shares.row(j), logits.row(j), beta, width);
  std::fill_n(beta, width, Real{0});
  for (Index j = 0; j < logits.rows; ++j) kernels::add_into(beta, shares.row(j), width);
  for (Index j = 0; j < logits.rows; ++j)
    std::transform(shares.row(j), shares.row(j) + width, beta, shares.row(j), std::divides<>());
  std::fill_n(beta, width, Real{0});
  for (Index j = 1; j <= layer; ++j) kernels::add_into(beta, shares.row(j), width);
}

Var lower_bound(Tape& tape, const Var& logits, Index layer) {
  const OpScope op_scope("lower bound");
  const Tensor beta({logits.extent(1)}), shares(logits.shape());
  lower_bound_into(beta.data(), shares.matrix(), logits.value().matrix(), layer);
  return tape.record(beta, {&logits}, [layer, beta, shares, slot = logits.gradient()](const Tensor& dbeta) {
    const Tensor d(shares.shape());  // dlogit_j = p_j dbeta ([1 <= j <= layer] - beta)
    for (Index j = 0; j < shares.extent(0); ++j)
      for (Index c = 0; c < shares.extent(1); ++c) {
        const Real below = j >= 1 && j <= layer ? Real{1} : Real{0};
        d.matrix()(j, c) = shares.matrix()(j, c) * dbeta.data()[c] * (below - beta.data()[c]);
      }
    slot->add(d);
  });
}

/// g = log alpha and k = 1 - alpha, alpha = beta + (1 - beta) sigmoid(f).
struct ForgetGate {
  Var log_decay, key;
};

ForgetGate forget_gate(Tape& tape, const Var& f, const Var& beta) {
  const OpScope op_scope("forget gate");
  const Matrix rows = f.value().matrix();
  const Tensor g(f.shape()), k(f.shape());
  for_blocks(rows.rows, kRowBlock, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      kernels::bounded_gate(g.matrix().row(r), k.matrix().row(r), rows.row(r), beta.value().data(), rows.cols);
  });
  auto out = tape.record_all(
      {g, k}, {&f, &beta},
      [f = f.value(), beta = beta.value(), df = f.gradient(), dbeta = beta.gradient()](std::span<Tensor> dout) {
        for (Tensor& d : dout) {
          if (!d.defined()) d = Tensor::zeros(f.shape());
          d.unique();
        }
        const Matrix x = f.matrix(), first = dout[0].matrix(), second = dout[1].matrix();
        for_blocks(x.rows, kRowBlock, [&](Index begin, Index end) {
          for (Index r = begin; r < end; ++r)
            kernels::bounded_gate_backward(first.row(r), second.row(r), first.row(r), second.row(r), x.row(r),
                                           beta.data(), x.cols);
        });
        add_gradient(df, dout[0]);
        if (dbeta == nullptr) return;
        const Tensor sum = Tensor::zeros(beta.shape());
        add_column_sums(sum.data(), second);
        dbeta->add(sum);
      });
  return {out[0], out[1]};
}

/// HGRN2: the forget gate is the key's complement, and stays above a bound that grows up the stack.
///   q = silu(W_q x), f = W_f x, v = W_i x;   alpha = beta_l + (1 - beta_l) sigmoid(f),  k = 1 - alpha;
///   S_t = diag(alpha) S_{t-1} + k v^T [K,V];   y = W_o RMSNorm(q S_t / sqrt(K)).
/// The bounds of all layers are one parameter of the model. With short convolutions what W_q, W_f and W_i make passes
/// one each, and nothing else. State: S [B,H,K,V], and the convolutions' last inputs. Source: arXiv:2404.07904.
class Hgrn2 final : public Mixer {
 public:
  explicit Hgrn2(const MixerSpec& spec)
      : dim_(spec.dim),
        heads_(heads_of_size(spec, 128, "expand_ratio", "channels of the state for each of the model's (K)")),
        width_(dim_ / heads_),
        layer_(spec.site.layer),
        bounds_(&spec.shared.get("lower_bounds", undecayed({spec.site.layers, dim_}, constant(0)))) {
    for (Linear* map : {&q_, &f_, &i_, &o_}) *map = Linear(dim_, dim_, normal(0.02));
    convs_ = InputConvs(spec.options, 1, {{"q", dim_}, {"f", dim_}, {"i", dim_}}, Activation::identity);
    norm_ = undecayed({dim_}, constant(1));
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Var beta = lower_bound(tape, bounds_->var(), layer_);
    std::array<Var, 3> qfi{q_(tape, x), f_(tape, x), i_(tape, x)};
    convs_(tape, qfi, context.layout, state);
    const auto [g, k] = forget_gate(tape, qfi[1], beta);
    OuterScanInput scan{.decay = Decay::key};
    scan.q = split_heads(activate(tape, qfi[0], Activation::silu), heads_);
    scan.k = split_heads(k, heads_);
    scan.v = split_heads(qfi[2], heads_);
    scan.log_decay = split_heads(g, heads_);
    scan.state = state.real(0);
    const OuterScanOutput o = outer_scan(tape, scan, context.layout);
    state.real(0) = o.state;
    return o_(tape, rms_norm(tape, join_heads(o.y), norm_.var(), epsilon()));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows;
    Scratch& scratch = *context.scratch;
    const Matrix q = scratch.take(lanes, dim_), decay = scratch.take(lanes, dim_), k = scratch.take(lanes, dim_);
    const Matrix v = scratch.take(lanes, dim_), o = scratch.take(lanes, dim_), beta = scratch.take(1, dim_);
    const Matrix logits = bounds_->value().matrix(), f = o;
    lower_bound_into(beta.data, scratch.take(logits.rows, dim_), logits, layer_);
    q_.step(q, x), f_.step(f, x), i_.step(v, x);
    convs_.step(std::array{q, f, v}, state);
    activate_into(Activation::silu, q.data, q.data, lanes * dim_);
    for (Index b = 0; b < lanes; ++b) kernels::bounded_gate(decay.row(b), k.row(b), f.row(b), beta.data, dim_);
    kernels::exp(decay.data, decay.data, lanes * dim_);
    Real* const s = state.writable(0).data();
    for (Index i = 0; i < lanes * heads_; ++i) {
      const Index at = i * width_;
      outer_scan_step(Decay::key, {q.data + at, 1, width_, width_}, k.data + at, v.data + at, decay.data + at,
                      {s + at * width_, width_, width_, width_}, nullptr, {o.data + at, 1, width_, width_}, nullptr);
    }
    const View rows{o.data, {lanes, dim_}};
    rms_norm_into(rows, rows, norm_.value(), epsilon());
    o_.step(y, o);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("S", "H K V", Tensor::zeros({lanes, heads_, width_, width_}));
    convs_.add_state(state, lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    f_.visit(visitor, "f_proj");
    i_.visit(visitor, "i_proj");
    convs_.visit(visitor);
    visitor("g_norm.weight", norm_);
    o_.visit(visitor, "o_proj");
  }

  double mixing_cost(Index) const override { return static_cast<double>(2 * dim_ * width_); }

 private:
  /// The scale of q stands in the norm's epsilon: RMSNorm(c o; eps) = RMSNorm(o; eps / c^2).
  double epsilon() const { return 1e-5 * static_cast<double>(width_); }

  Index dim_, heads_, width_, layer_;
  const Parameter* bounds_;  ///< logits of the bounds of all layers, [L,D]; the model's
  Linear q_, f_, i_, o_;
  InputConvs convs_;
  Parameter norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_hgrn2(const MixerSpec& spec) { return std::make_unique<Hgrn2>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
