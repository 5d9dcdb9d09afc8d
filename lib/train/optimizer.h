#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/real.h"

namespace quipu {

/// AdamW (decoupled decay), Adam (decay added to the gradient), Nesterov's momentum as torch's SGD has it.
enum class OptimizerKind { kAdamW, kAdam, kNag };

/// An optimiser, its name on the command line and in files, and what it does in one line.
struct OptimizerEntry {
  OptimizerKind kind;
  std::string_view name;
  std::string_view summary;
};

/// All optimisers: the only list of their names.
std::span<const OptimizerEntry> optimizer_table();

/// Throws UsageError with the names that exist.
OptimizerKind optimizer_from_name(std::string_view name);
std::string_view optimizer_name(OptimizerKind kind);

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9;  // nag: the momentum
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  // of the groups that decay
};

/// A slice [begin, end) of the flat arrays whose elements are treated alike.
struct ParameterGroup {
  Index begin = 0;
  Index end = 0;
  bool decay = true;
  double lr_scale = 1;
};

inline namespace QUIPU_REAL_NS {

/// The Euclidean norm of all gradients; `first_bad` is the index of the first one that is not finite, or -1.
struct GradientNorm {
  double norm = 0;
  Index first_bad = -1;
};

/// Sums in double over fixed blocks in a fixed order: the same bits for any number of threads.
GradientNorm grad_norm(std::span<const Real> grads);

/// min(1, max_norm / (norm + 1e-6)); 1 where max_norm is 0 (no clipping).
double clip_coefficient(double norm, double max_norm);

/// Updates one flat array of parameters from one flat array of gradients, both [n] with n >= `size()`; elements in no
/// group stay as they are. Element by element, hence the same bits for any number of threads.
///   adamw  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
///          p -= lr wd p + lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps)
///   adam   the same with g + wd p for g, and no decay of its own
///   nag    g += wd p;  m = b1 m + g;  p -= lr (g + b1 m)
class Optimizer {
 public:
  /// Throws UsageError where an option is out of range, ShapeError where groups overlap or are out of order.
  Optimizer(OptimizerOptions options, std::vector<ParameterGroup> groups);

  /// One update. `grad_scale` multiplies every gradient as it is read: the clip coefficient, 1/accumulated batches.
  /// Throws ShapeError where the arrays disagree.
  void step(std::span<Real> params, std::span<const Real> grads, double lr, double grad_scale = 1);

  /// One named array of the optimiser's memory, [size()].
  struct StateArray {
    std::string_view name;
    std::span<Real> values;
  };
  /// What has to be saved and restored, with `steps_taken`, to go on exactly: m and v, or nag's m alone.
  std::vector<StateArray> state();

  Index steps_taken() const { return steps_taken_; }
  void set_steps_taken(Index steps) { steps_taken_ = steps; }

  /// The elements that it keeps state for: the end of the last group.
  Index size() const { return size_; }
  const OptimizerOptions& options() const { return options_; }

 private:
  struct Block {
    Index begin;
    Index end;
    std::size_t group;
  };

  OptimizerOptions options_;
  std::vector<ParameterGroup> groups_;
  std::vector<Block> blocks_;
  std::vector<Real> m_;
  std::vector<Real> v_;
  Index size_ = 0;
  Index steps_taken_ = 0;
};

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
