#pragma once
#include <string>

#include "grad/linear_layer.h"
#include "grad/ops_norm.h"
#include "mixers/heads.h"
#include "mixers/mixer.h"

namespace quipu::inline QUIPU_REAL_NS {

/// How many mixers end: each head's output normalised, gated by the layer's input, projected back:
///   y = W_o (RMSNorm_V(o) silu(W_g x)),  RMSNorm's weight [V] shared by the heads; without `gate`, y = W_o
///   RMSNorm_V(o).
class GatedOutput {
 public:
  GatedOutput() = default;
  /// `norm_name`: what the published parameters call the norm; empty: it has no weight.
  GatedOutput(Index dim, Index heads, Index value_width, std::string norm_name, bool gate = true, double eps = 1e-5)
      : heads_(heads), width_(value_width), gated_(gate), eps_(eps), norm_name_(std::move(norm_name)) {
    if (gated_) g_ = Linear(heads * value_width, dim, normal(0.02));
    o_ = Linear(dim, heads * value_width, normal(0.02));
    if (!norm_name_.empty()) norm_ = undecayed({value_width}, constant(1));
  }

  /// o: [B,T,H,V];  x: [B,T,D], what the layer read;  y: [B,T,D].
  Var operator()(Tape& tape, const Var& o, const Var& x) const {
    const Var normed = gated_ ? rms_norm_gated(tape, o, split_heads(g_(tape, x), heads_), norm_.var(), eps_)
                              : rms_norm(tape, o, norm_.var(), eps_);
    return o_(tape, join_heads(normed));
  }

  /// o: [B,H V], overwritten;  x, y: [B,D].
  void step(Matrix y, Matrix o, Matrix x, Scratch& scratch) const {
    const View rows{o.data, {o.rows * heads_, width_}};
    if (gated_) {
      const Matrix gate = scratch.take(o.rows, o.cols);
      g_.step(gate, x);
      rms_norm_gated_into(rows, rows, {gate.data, rows.shape}, norm_.value(), eps_);
    } else {
      rms_norm_into(rows, rows, norm_.value(), eps_);
    }
    o_.step(y, o);
  }

  void visit(const ParameterVisitor& visitor) {
    if (gated_) g_.visit(visitor, "g_proj");
    if (!norm_name_.empty()) visitor(norm_name_ + ".weight", norm_);
    o_.visit(visitor, "o_proj");
  }

 private:
  Index heads_ = 1, width_ = 0;
  bool gated_ = true;
  double eps_ = 1e-5;
  std::string norm_name_;
  Linear g_, o_;
  Parameter norm_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
