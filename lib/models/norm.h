#pragma once
#include <string>

#include "grad/ops_norm.h"
#include "grad/parameter.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A model's normalisation over its width: "layernorm" (weight and bias) or "rmsnorm" (weight).
class Norm {
 public:
  Norm() = default;
  Norm(const std::string& kind, Index dim, double eps) : rms_(kind == "rmsnorm"), eps_(eps) {
    if (!rms_ && kind != "layernorm") throw UsageError("--norm {}: is unknown; there are layernorm, rmsnorm", kind);
    weight_ = undecayed({dim}, constant(1));
    if (!rms_) bias_ = undecayed({dim}, constant(0));
  }

  Var operator()(Tape& tape, const Var& x) const {
    return rms_ ? rms_norm(tape, x, weight_.var(), eps_) : layer_norm(tape, x, weight_.var(), bias_.var(), eps_);
  }
  /// x, y: [rows,D].
  void step(Matrix y, Matrix x) const {
    const OpScope op_scope("norm");
    const View from{x.data, {x.rows, x.cols}}, to{y.data, {y.rows, y.cols}};
    rms_ ? rms_norm_into(to, from, weight_.value(), eps_)
         : layer_norm_into(to, from, weight_.value(), bias_.value(), eps_);
  }
  void visit(const ParameterVisitor& visitor, const std::string& name) {
    visitor(name + ".weight", weight_);
    if (!rms_) visitor(name + ".bias", bias_);
  }

 private:
  bool rms_ = true;
  double eps_ = 1e-5;
  Parameter weight_, bias_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
