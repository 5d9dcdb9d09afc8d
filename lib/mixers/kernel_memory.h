#pragma once
#include "grad/ops_quotient.h"
#include "mixers/heads.h"
#include "mixers/state.h"
#include "scan/outer_scan.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The memory of kernel attention: sums of features times values, and of features.
///   S_t = e^g S_{t-1} + phi(k) v^T [M,V];   z_t = e^g z_{t-1} + phi(k) [M];   o = phi(q) S / divisor(phi(q) z).
/// Its two leaves are the first of a mixer's state: S [B,H,M,V], and z [B,H,M] unless it does not normalise.
class KernelMemory {
 public:
  KernelMemory() = default;
  KernelMemory(Index heads, Index features, Index width, const Divisor& divisor, bool normalise = true)
      : heads_(heads), features_(features), width_(width), divisor_(divisor), normalise_(normalise) {}

  struct Input {
    Var q, k;         ///< features, [B,T,H,M]
    Var v;            ///< [B,T,H,V]
    Var log_decay{};  ///< g [B,T,H]; undefined: nothing is forgotten
  };
  /// o: [B,T,H,V]; the state is replaced by that after the last token.
  Var operator()(Tape& tape, const Input& in, const Layout& layout, State& state) const {
    const OuterScanOutput out = outer_scan(tape,
                                           {.decay = in.log_decay.defined() ? Decay::scalar : Decay::none,
                                            .q = in.q,
                                            .k = in.k,
                                            .v = in.v,
                                            .log_decay = in.log_decay,
                                            .state = state.real(0),
                                            .normaliser = normalise_,
                                            .z = normalise_ ? state.real(1) : Var()},
                                           layout);
    state.real(0) = out.state;
    if (!normalise_) return out.y;
    state.real(1) = out.z;
    return quotient(tape, out.y, out.denominator, divisor_);
  }

  struct StepInput {
    Matrix q, k, v;                      ///< q, k: H M numbers a lane;  v: H V
    const Real* decay_factor = nullptr;  ///< e^g, one a lane and head; null: nothing is forgotten
  };
  /// o: H V numbers a lane.
  void step(Matrix o, const StepInput& in, State& state) const {
    Real* const s = state.writable(0).data();
    Real* const z = normalise_ ? state.writable(1).data() : nullptr;
    const Index rows = o.rows * o.cols / width_;
    for (Index i = 0; i < rows; ++i) {
      const Index feature = i * features_, at = i * width_;
      const Matrix out{o.data + at, 1, width_, width_};
      Real denominator = 1;
      outer_scan_step(
          in.decay_factor == nullptr ? Decay::none : Decay::scalar, {in.q.data + feature, 1, features_, features_},
          in.k.data + feature, in.v.data + at, in.decay_factor == nullptr ? nullptr : in.decay_factor + i,
          {s + feature * width_, features_, width_, width_}, z == nullptr ? nullptr : z + feature, out, &denominator);
      if (normalise_) kernels::scale(out.data, 1 / divisor_(denominator), out.data, width_);
    }
  }

  void add_state(State& state, Index lanes) const {
    state.add_real("S", "H M V", Tensor::zeros({lanes, heads_, features_, width_}));
    if (normalise_) state.add_real("z", "H M", Tensor::zeros({lanes, heads_, features_}));
  }
  /// Multiply-adds a token.
  double cost() const { return static_cast<double>(2 * heads_ * features_ * (width_ + (normalise_ ? 1 : 0))); }

 private:
  Index heads_ = 1, features_ = 0, width_ = 0;
  Divisor divisor_{};
  bool normalise_ = true;
};

}  // namespace quipu::inline QUIPU_REAL_NS
