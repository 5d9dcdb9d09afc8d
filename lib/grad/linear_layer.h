#pragma once
#include <string>

#include "grad/ops_linear.h"
#include "grad/parameter.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A linear map with its weight [out,in], in any number format, and, where wanted, its bias [out] (undecayed; at first
/// a constant).
class Linear {
 public:
  Linear() = default;
  Linear(Index out, Index in, Initializer init, bool with_bias = false, double bias = 0)
      : weight_(matrix(out, in, std::move(init))) {
    if (with_bias) bias_ = undecayed({out}, constant(bias));
  }
  /// A weight [out,in] that starts and is trained as it says.
  explicit Linear(Parameter weight) : weight_(std::move(weight).as_matrix()) {}

  Index out() const { return weight_.shape()[0]; }
  Index in() const { return weight_.shape()[1]; }
  const Parameter& weight() const { return weight_; }
  const Parameter& bias() const { return bias_; }
  bool has_bias() const { return bias_.shape().rank() > 0; }

  Var operator()(Tape& tape, const Var& x) const { return (*this)(tape, x, bias_.var()); }
  /// With a bias that is kept elsewhere.
  Var operator()(Tape& tape, const Var& x, const Var& bias) const {
    return weight_.is_packed() ? linear_untrained(tape, x, weight_.weight(), bias)
                               : linear(tape, x, weight_.var(), bias);
  }
  /// Outputs [begin, end) alone: several maps whose published weights are one.
  Var rows(Tape& tape, const Var& x, Index begin, Index end) const {
    return rows(tape, x, begin, end, has_bias() ? bias_.rows(begin, end) : Var());
  }
  /// With a bias [end - begin] that is kept elsewhere.
  Var rows(Tape& tape, const Var& x, Index begin, Index end, const Var& bias) const {
    return weight_.is_packed() ? linear_untrained(tape, x, weight_.weight().rows(begin, end), bias)
                               : linear(tape, x, weight_.rows(begin, end), bias);
  }
  /// x: [rows,in];  y: [rows,out].
  void step(Matrix y, Matrix x) const { linear_into(y, x, weight_.weight(), bias_.value()); }
  void step(Matrix y, Matrix x, const Tensor& bias) const { linear_into(y, x, weight_.weight(), bias); }
  /// With a bias [out] that starts and is trained as it says.
  Linear with_bias(Parameter bias) && {
    bias_ = std::move(bias);
    return std::move(*this);
  }
  /// As NAME.weight and NAME.bias.
  void visit(const ParameterVisitor& visitor, const std::string& name) {
    visitor(name + ".weight", weight_);
    if (has_bias()) visitor(name + ".bias", bias_);
  }

 private:
  Parameter weight_, bias_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
