#pragma once
#include <cmath>

#include "grad/ops_norm.h"
#include "mixers/conv_projection.h"
#include "mixers/heads.h"
#include "scan/delta_scan.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What the delta rules read of a token:  q, k = silu(conv(W x)), each head of length 1;  v = silu(conv(W x));
/// beta = sigmoid(W_b x), one a value head, twice that where eigenvalues of the state's map may be negative. Queries
/// are scaled by K^-1/2. The memory S [B,H,K,V] is leaf 0 of the state, the convolutions' are those after it.
class DeltaInputs {
 public:
  struct Sizes {
    Index dim, key_heads, value_heads, key, value;
  };

  DeltaInputs() = default;
  /// Reads the options that both rules have.
  DeltaInputs(const Sizes& sizes, Options& options) : s_(sizes) {
    const bool convolved = options.flag("use_short_conv", true, "short convolutions over q, k and v");
    Index taps = options.integer("conv_size", 4, 2, "taps of the short convolutions");
    if (!convolved) taps = 0;
    beta_scale_ =
        options.flag("allow_neg_eigval", false, "steps beta up to 2, so that a memory can change sign") ? 2 : 1;
    q_ = ConvProjection(s_.key_heads * s_.key, s_.dim, taps);
    k_ = ConvProjection(s_.key_heads * s_.key, s_.dim, taps);
    v_ = ConvProjection(s_.value_heads * s_.value, s_.dim, taps);
    b_ = Linear(s_.value_heads, s_.dim, normal(0.02));
  }

  const Sizes& sizes() const { return s_; }

  /// The scan's inputs but for its decay; the convolutions' leaves move on.
  DeltaScanInput operator()(Tape& tape, const Var& x, const Layout& layout, State& state) const {
    const auto unit = [&](const Var& y) { return l2_norm(tape, split_heads(y, s_.key_heads), kLengthEpsilon); };
    DeltaScanInput scan;
    scan.q = unit(q_(tape, x, layout, state, 1));
    scan.k = unit(k_(tape, x, layout, state, 2));
    scan.v = split_heads(v_(tape, x, layout, state, 3), s_.value_heads);
    scan.beta = activate(tape, b_(tape, x), Activation::sigmoid);
    if (beta_scale_ != 1) scan.beta = quipu::scale(tape, scan.beta, beta_scale_);
    scan.state = state.real(0);
    scan.scale = query_scale();
    return scan;
  }

  /// One token a lane: advances the memory with the decays e^g [B,H] (or null) and writes o [B, H V].
  void step(Matrix o, Matrix x, const Real* decay_factor, Scratch& scratch, State& state) const {
    const Index lanes = x.rows, heads = s_.value_heads, groups = heads / s_.key_heads;
    const Matrix q = scratch.take(lanes, q_.out()), k = scratch.take(lanes, k_.out());
    const Matrix v = scratch.take(lanes, v_.out()), beta = scratch.take(lanes, heads);
    q_.step(q, x, state, 1), k_.step(k, x, state, 2), v_.step(v, x, state, 3), b_.step(beta, x);
    for (const Matrix& m : {q, k}) {
      const View rows{m.data, {lanes * s_.key_heads, s_.key}};
      l2_norm_into(rows, rows, kLengthEpsilon);
    }
    activate_into(Activation::sigmoid, beta.data, beta.data, lanes * heads);
    Real* const memory = state.writable(0).data();
    for (Index i = 0; i < lanes * heads; ++i) {
      const Index key = i / groups * s_.key;
      DeltaToken token{q.data + key, k.data + key, v.data + i * s_.value, beta_scale_ * beta.data[i]};
      token.decay_factor = decay_factor == nullptr ? nullptr : decay_factor + i;
      token.scale = query_scale();
      delta_scan_step(decay_factor == nullptr ? Decay::none : Decay::scalar, token,
                      {memory + i * s_.key * s_.value, s_.key, s_.value, s_.value}, o.data + i * s_.value);
    }
  }

  State initial_state(Index lanes) const {
    State state;
    state.add_real("S", "H K V", Tensor::zeros({lanes, s_.value_heads, s_.key, s_.value}));
    q_.add_state(state, "conv_q", lanes);
    k_.add_state(state, "conv_k", lanes);
    v_.add_state(state, "conv_v", lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) {
    q_.visit(visitor, "q");
    k_.visit(visitor, "k");
    v_.visit(visitor, "v");
    b_.visit(visitor, "b_proj");
  }

  /// Read, write and read again.
  double mixing_cost() const { return static_cast<double>(3 * s_.value_heads * s_.key * s_.value); }

 private:
  static constexpr double kLengthEpsilon = 1e-6;
  Real query_scale() const { return static_cast<Real>(1 / std::sqrt(static_cast<double>(s_.key))); }

  Sizes s_{};
  Real beta_scale_ = 1;
  ConvProjection q_, k_, v_;
  Linear b_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
