#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/op_times.h"
#include "tensor/tensor.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The slot in which the gradient of one value gathers. Either it owns what it gathers (activations), or it is bound
/// to a slice of the flat gradient array (parameters), into which it always adds.
class Gradient {
 public:
  explicit Gradient(const Shape& shape) : shape_(shape) {}
  /// Bound to `slice`, which the caller zeroes.
  static std::shared_ptr<Gradient> bound(Tensor slice);

  const Shape& shape() const { return shape_; }
  bool empty() const { return !sum_.defined(); }
  /// Adds `gradient` (same count); the first one is taken over without a copy.
  void add(Tensor gradient);
  /// For products that can add by themselves: the storage to write into, seen as [rows, cols],
  /// and whether to add (beta 1) or set (beta 0).
  std::pair<Matrix, Real> target(Index rows, Index cols);
  const Tensor& sum() const { return sum_; }
  /// The gathered gradient, leaving the slot empty; undefined where nothing arrived.
  Tensor take() { return std::exchange(sum_, {}); }

 private:
  Shape shape_;
  Tensor sum_;
  bool bound_ = false;
};

/// A value on the tape: a tensor, and a gradient slot where a gradient is wanted. A Var without a slot is a constant.
class Var {
 public:
  Var() = default;
  Var(Tensor value) : value_(std::move(value)) {}  // NOLINT: a tensor is a constant
  Var(Tensor value, std::shared_ptr<Gradient> gradient) : value_(std::move(value)), gradient_(std::move(gradient)) {}
  /// A value whose gradient is wanted.
  static Var leaf(Tensor value);

  bool defined() const { return value_.defined(); }
  const Tensor& value() const { return value_; }
  Tensor& mutable_value() { return value_; }
  const Shape& shape() const { return value_.shape(); }
  Index extent(int axis) const { return value_.extent(axis); }
  bool wants_gradient() const { return gradient_ != nullptr; }
  const std::shared_ptr<Gradient>& gradient() const { return gradient_; }
  /// The same value as a constant.
  Var detached() const { return Var(value_); }
  /// The same storage under another shape of the same count; the gradient slot is shared.
  Var reshaped(const Shape& shape) const { return {value_.reshaped(shape), gradient_}; }

 private:
  Tensor value_;
  std::shared_ptr<Gradient> gradient_;
};

/// Adds `gradient` to the slot of a variable, if it has one.
inline void add_gradient(const std::shared_ptr<Gradient>& slot, Tensor gradient) {
  if (slot) slot->add(std::move(gradient));
}

/// Records fused operations in order, and runs their backward functions in reverse. An entry is an operation over a
/// whole layer and segment, never a time step. A backward function receives the gradients of the operation's outputs
/// (undefined where none arrived; never called where none arrived at all) and adds to the slots of its inputs; it
/// captures just the tensors that it needs, and each entry is freed as soon as it has run. Where somebody listens to
/// the times of operations, an entry belongs to the one that is open when it is recorded (base/op_times.h).
class Tape {
 public:
  using Backward = std::function<void(std::span<Tensor> output_gradients)>;

  /// A tape that does not record serves evaluation: the same operations, nothing kept.
  explicit Tape(bool recording) : recording_(recording) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  bool recording() const { return recording_; }
  std::size_t size() const { return entries_.size(); }

  /// Whether an operation on these inputs has to be recorded.
  bool needs(std::initializer_list<const Var*> inputs) const;

  /// One output. `backward(dy)` where dy is a Tensor.
  template <typename F>
  Var record(Tensor y, std::initializer_list<const Var*> inputs, F&& backward) {
    if (!needs(inputs)) return Var(std::move(y));
    Var out = Var::leaf(std::move(y));
    push({out.gradient()}, [f = std::forward<F>(backward)](std::span<Tensor> dy) mutable { f(std::move(dy[0])); });
    return out;
  }

  /// Several outputs. `backward(span of dy)`.
  std::vector<Var> record_all(std::vector<Tensor> ys, std::initializer_list<const Var*> inputs, Backward backward);

  /// Puts an entry by hand (checkpoint).
  void push(std::vector<std::shared_ptr<Gradient>> outputs, Backward backward);

  /// Runs everything recorded, from `seed` as the gradient of `y`, and empties the tape.
  void backward(const Var& y, Tensor seed);
  /// Of a scalar, with seed 1.
  void backward(const Var& loss);
  /// From several outputs at once.
  void backward(const std::vector<std::pair<Var, Tensor>>& seeds);
  /// From the gradients that outputs have by now.
  void backward();

 private:
  struct Entry {
    std::vector<std::shared_ptr<Gradient>> outputs;
    Backward backward;
    const char* op;  ///< for its times; null: none listens
  };
  bool recording_;
  std::vector<Entry> entries_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
