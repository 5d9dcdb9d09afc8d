#include "grad/tape.h"

#include <algorithm>

#include "base/blocks.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {

std::shared_ptr<Gradient> Gradient::bound(Tensor slice) {
  auto gradient = std::make_shared<Gradient>(slice.shape());
  gradient->sum_ = std::move(slice);
  gradient->bound_ = true;
  return gradient;
}

void Gradient::add(Tensor gradient) {
  if (gradient.count() != shape_.count())
    throw InternalError("a gradient of shape {} for a value of shape {}", gradient.shape().text(), shape_.text());
  if (empty()) {
    sum_ = gradient.reshaped(shape_);
    return;
  }
  if (!bound_) sum_.unique();
  for_blocks(sum_.count(), kElementBlock, [&](Index begin, Index end) {
    kernels::add_into(sum_.data() + begin, gradient.data() + begin, end - begin);
  });
}

std::pair<Matrix, Real> Gradient::target(Index rows, Index cols) {
  const bool first = empty();
  if (first) sum_ = Tensor(shape_);
  if (!first && !bound_) sum_.unique();
  return {Matrix{sum_.data(), rows, cols, cols}, first ? Real{0} : Real{1}};
}

Var Var::leaf(Tensor value) {
  auto gradient = std::make_shared<Gradient>(value.shape());
  return {std::move(value), std::move(gradient)};
}

bool Tape::needs(std::initializer_list<const Var*> inputs) const {
  return recording_ &&
         std::any_of(inputs.begin(), inputs.end(), [](const Var* input) { return input->wants_gradient(); });
}

std::vector<Var> Tape::record_all(std::vector<Tensor> ys, std::initializer_list<const Var*> inputs, Backward backward) {
  const bool wanted = needs(inputs);
  std::vector<Var> outputs;
  std::vector<std::shared_ptr<Gradient>> slots;
  for (Tensor& y : ys) {
    outputs.push_back(wanted && y.defined() ? Var::leaf(std::move(y)) : Var(std::move(y)));
    slots.push_back(outputs.back().gradient());
  }
  if (wanted) push(std::move(slots), std::move(backward));
  return outputs;
}

void Tape::push(std::vector<std::shared_ptr<Gradient>> outputs, Backward backward) {
  entries_.push_back({std::move(outputs), std::move(backward), OpScope::current()});
}

void Tape::backward(const Var& y, Tensor seed) { backward({{y, std::move(seed)}}); }

void Tape::backward(const Var& loss) { backward(loss, Tensor::full(loss.shape(), 1)); }

void Tape::backward(const std::vector<std::pair<Var, Tensor>>& seeds) {
  for (const auto& [y, seed] : seeds) add_gradient(y.gradient(), seed);
  backward();
}

void Tape::backward() {
  while (!entries_.empty()) {
    Entry entry = std::move(entries_.back());
    entries_.pop_back();
    std::vector<Tensor> gradients;
    for (const auto& slot : entry.outputs) gradients.push_back(slot ? slot->take() : Tensor{});
    if (std::none_of(gradients.begin(), gradients.end(), [](const Tensor& t) { return t.defined(); })) continue;
    const OpScope op_scope(entry.op != nullptr ? entry.op : OpTimes::kOther, true);
    entry.backward(gradients);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
