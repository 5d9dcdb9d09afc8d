#include "grad/checkpoint.h"

namespace quipu::inline QUIPU_REAL_NS {

std::vector<Var> checkpoint(Tape& tape, const std::vector<Var>& inputs,
                            std::function<std::vector<Var>(Tape&, const std::vector<Var>&)> fn) {
  if (!tape.recording()) return fn(tape, inputs);

  std::vector<Var> outputs;
  std::vector<std::shared_ptr<Gradient>> slots;
  {
    Tape forward(false);
    for (const Var& y : fn(forward, inputs)) {
      outputs.push_back(y.defined() ? Var::leaf(y.value()) : Var());
      slots.push_back(outputs.back().gradient());
    }
  }
  tape.push(std::move(slots), [inputs, fn = std::move(fn)](std::span<Tensor> dys) {
    Tape again(true);
    std::vector<Var> leaves;
    for (const Var& x : inputs) leaves.push_back(x.wants_gradient() ? Var::leaf(x.value()) : x);
    {
      const std::vector<Var> ys = fn(again, leaves);  // gone before the backward pass
      for (std::size_t i = 0; i < ys.size(); ++i)
        if (dys[i].defined()) add_gradient(ys[i].gradient(), std::move(dys[i]));
    }
    again.backward(std::vector<std::pair<Var, Tensor>>{});
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].wants_gradient() && !leaves[i].gradient()->empty())
        inputs[i].gradient()->add(leaves[i].gradient()->take());
  });
  return outputs;
}

}  // namespace quipu::inline QUIPU_REAL_NS
