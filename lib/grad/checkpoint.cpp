#include "grad/checkpoint.h"

#include <algorithm>

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kSliceRows = 1024;

/// x [B,T,D] in slices [1,n,D] of the same storage.
std::vector<Tensor> slices_of(const Tensor& x) {
  const Index width = x.extent(-1), rows = x.count() / width;
  std::vector<Tensor> slices;
  for (Index begin = 0; begin < rows; begin += kSliceRows)
    slices.push_back(x.part(begin * width, {1, std::min(kSliceRows, rows - begin), width}));
  return slices;
}

void put(const Tensor& to, const Tensor& from) { std::copy_n(from.data(), from.count(), to.data()); }

}  // namespace

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
    again.backward();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].wants_gradient() && !leaves[i].gradient()->empty())
        inputs[i].gradient()->add(leaves[i].gradient()->take());
  });
  return outputs;
}

Var checkpoint_rows(Tape& tape, const Var& x, std::function<Var(Tape&, const Var&)> fn) {
  if (!tape.recording()) return fn(tape, x);

  const Var y = Var::leaf(Tensor(x.shape()));
  const std::vector<Tensor> xs = slices_of(x.value()), ys = slices_of(y.value());
  for (std::size_t i = 0; i < xs.size(); ++i) {
    Tape forward(false);
    put(ys[i], fn(forward, xs[i]).value());
  }
  tape.push({y.gradient()}, [xs, dx = x.gradient(), fn = std::move(fn)](std::span<Tensor> dy) {
    // A slice's gradient takes the place of dy's slice, which has been read by then.
    const std::vector<Tensor> dys = slices_of(dy[0].unique());
    for (std::size_t i = 0; i < xs.size(); ++i) {
      Tape again(true);
      const Var leaf = dx ? Var::leaf(xs[i]) : Var(xs[i]);
      add_gradient(fn(again, leaf).gradient(), dys[i]);
      again.backward();
      if (dx) put(dys[i], leaf.gradient()->sum());
    }
    if (dx) dx->add(std::move(dy[0]));
  });
  return y;
}

}  // namespace quipu::inline QUIPU_REAL_NS
