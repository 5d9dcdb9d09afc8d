#pragma once
#include <optional>

#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "mixers/mixer.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A map through a narrow middle:  y = U f(D x) + b, with D [rank,in], U [out,rank] and f an activation or none. The
/// gates of GLA and the data-dependent decays of RWKV are such maps.
class LowRank {
 public:
  LowRank() = default;
  LowRank(Linear down, Linear up, std::optional<Activation> middle = {})
      : down_(std::move(down)), up_(std::move(up)), middle_(middle) {}

  Index out() const { return up_.out(); }

  Var operator()(Tape& tape, const Var& x) const {
    const Var narrow = down_(tape, x);
    return up_(tape, middle_ ? activate(tape, narrow, *middle_) : narrow);
  }
  /// x: [rows,in];  y: [rows,out].
  void step(Matrix y, Matrix x, Scratch& scratch) const {
    const Matrix narrow = scratch.take(x.rows, down_.out());
    down_.step(narrow, x);
    if (middle_) activate_into(*middle_, narrow.data, narrow.data, narrow.rows * narrow.cols);
    up_.step(y, narrow);
  }
  void visit(const ParameterVisitor& visitor, const std::string& down, const std::string& up) {
    down_.visit(visitor, down);
    up_.visit(visitor, up);
  }

 private:
  Linear down_, up_;
  std::optional<Activation> middle_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
