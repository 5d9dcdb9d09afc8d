#pragma once
#include <array>

#include "grad/linear_layer.h"
#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "mixers/heads.h"
#include "mixers/rwkv_start.h"
#include "scan/outer_scan.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What RWKV-5 and RWKV-6 have in common: heads with a matrix for a memory, which a token reads before it writes.
///   r = W_r x^r,  k = W_k x^k,  v = W_v x^v;   o_t = r_t (S_{t-1} + diag(u) k_t v_t^T),
///   S_t = diag(e^g) S_{t-1} + k_t v_t^T [K,V];   y = W_o (GroupNorm(o) silu(W_g x^g)), or W_o GroupNorm(o) without
///   gate.
class RwkvHeads {
 public:
  RwkvHeads() = default;
  /// Reads the options head_size and groupnorm_eps.
  RwkvHeads(const MixerSpec& spec, bool gated)
      : heads_(heads_of_size(spec, 64, "head_size", "width of a head (K = V)")),
        width_(spec.dim / heads_),
        eps_(spec.options.real("groupnorm_eps", 64e-5, "epsilon of the heads' norm")),
        gated_(gated) {
    const Index dim = spec.dim;
    receptance_ = Linear(dim, dim, rwkv_orthogonal(dim, dim));
    key_ = Linear(dim, dim, rwkv_orthogonal(dim, dim, 0.1));
    value_ = Linear(dim, dim, rwkv_orthogonal(dim, dim));
    if (gated_) gate_ = Linear(dim, dim, rwkv_orthogonal(dim, dim, 0.1));
    output_ = Linear(dim, dim, constant(0));
    const double depth = static_cast<double>(spec.site.layer + 1) / static_cast<double>(spec.site.layers);
    norm_weight_ = undecayed({dim}, constant(std::pow(depth, 0.7)));
    norm_bias_ = undecayed({dim}, constant(0));
  }

  Index heads() const { return heads_; }
  Index width() const { return width_; }

  /// Tokens blended with those before them, [B,T,D] each, and how a memory fades: log decays as outer_scan takes them.
  struct Inputs {
    Var r, k, v, g;
    Decay decay;
    Var log_decay, bonus;  ///< bonus: u [H,K]
  };
  /// Replaces `memory` [B,H,K,V].
  Var operator()(Tape& tape, const Inputs& in, Var& memory, const Layout& layout) const {
    OuterScanInput scan{.decay = in.decay};
    scan.q = split_heads(receptance_(tape, in.r), heads_);
    scan.k = split_heads(key_(tape, in.k), heads_);
    scan.v = split_heads(value_(tape, in.v), heads_);
    scan.log_decay = in.log_decay, scan.bonus = in.bonus, scan.state = memory;
    const OuterScanOutput o = outer_scan(tape, scan, layout);
    memory = o.state;
    const Var y = group_norm(tape, join_heads(o.y), heads_, norm_weight_.var(), norm_bias_.var(), eps_);
    return output_(tape, gated_ ? gated(tape, gate_(tape, in.g), y, Activation::silu) : y);
  }

  /// The same of one token, [B,D] each. decay: factors e^g, `decay_width` a head, and from lane to lane
  /// `decay_stride` apart (0: the same for all);  bonus: u [H,K].
  struct StepInputs {
    Matrix r, k, v, g;
    Decay decay;
    const Real* factors;
    Index decay_width, decay_stride;
    const Real* bonus;
  };
  void step(Matrix y, const StepInputs& in, Tensor& memory, Scratch& scratch) const {
    const Index lanes = y.rows, dim = y.cols;
    const auto take = [&] { return scratch.take(lanes, dim); };
    const Matrix r = take(), k = take(), v = take(), o = take();
    receptance_.step(r, in.r), key_.step(k, in.k), value_.step(v, in.v);
    for (Index i = 0; i < lanes * heads_; ++i) {
      const Index at = i * width_, head = i % heads_;
      outer_scan_step(in.decay, {r.data + at, 1, width_, width_}, k.data + at, v.data + at,
                      in.factors + i / heads_ * in.decay_stride + head * in.decay_width,
                      {memory.data() + at * width_, width_, width_, width_}, nullptr, {o.data + at, 1, width_, width_},
                      nullptr, in.bonus + head * width_);
    }
    const View rows{o.data, {lanes, dim}};
    group_norm_into(rows, rows, heads_, norm_weight_.value(), norm_bias_.value(), eps_);
    if (gated_) {
      gate_.step(r, in.g);
      kernels::gated(Activation::silu, o.data, r.data, o.data, lanes * dim);
    }
    output_.step(y, o);
  }

  void add_state(State& state, Index lanes) const {
    state.add_real("S", "H K V", Tensor::zeros({lanes, heads_, width_, width_}));
    state.add_real("x_prev", "D", Tensor::zeros({lanes, heads_ * width_}));
  }

  void visit(const ParameterVisitor& visitor) {
    receptance_.visit(visitor, "receptance");
    key_.visit(visitor, "key");
    value_.visit(visitor, "value");
    if (gated_) gate_.visit(visitor, "gate");
    visitor("ln_x.weight", norm_weight_);
    visitor("ln_x.bias", norm_bias_);
    output_.visit(visitor, "output");
  }

  /// Fade, write and read.
  double mixing_cost() const { return static_cast<double>(3 * heads_ * width_ * width_); }

 private:
  Index heads_ = 1, width_ = 0;
  double eps_ = 64e-5;
  bool gated_ = true;
  Linear receptance_, key_, value_, gate_, output_;
  Parameter norm_weight_, norm_bias_;
};

/// What a bonus starts from: `rising` at the first of `count` channels (or heads), 0 at the last, and a zigzag.
inline Initializer rwkv_bonus(Index count, double rising) {
  const double last = std::max<double>(1, static_cast<double>(count - 1));
  return by_channel([=](double i) { return rising * (1 - i / last) + 0.1 * (std::fmod(i + 1, 3) - 1); });
}

}  // namespace quipu::inline QUIPU_REAL_NS
