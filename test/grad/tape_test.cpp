#include "grad/tape.h"

#include "grad/ops_pointwise.h"
#include "op_checks.h"

namespace quipu {
namespace {

Tensor ones(Index n) { return Tensor::full({n}, 1); }

}  // namespace

TEST_CASE("a gradient that two slots share is copied before either adds to it") {
  Gradient a({3});
  Gradient b({3});
  const Tensor shared = ones(3);
  a.add(shared);
  b.add(shared);
  a.add(Tensor::full({3}, 2));
  CHECK(a.sum().data()[0] == 3);
  CHECK(b.sum().data()[0] == 1);
  CHECK(shared.data()[0] == 1);
}

TEST_CASE("the first gradient is taken over without a copy, and its shape becomes the slot's") {
  Gradient slot({2, 3});
  Tensor gradient = ones(6);
  const Real* const storage = gradient.data();
  slot.add(std::move(gradient));
  CHECK(slot.sum().data() == storage);
  CHECK(slot.sum().shape() == Shape{2, 3});
  CHECK(slot.take().is_unique());
  CHECK(slot.empty());
  CHECK_THROWS_AS(slot.add(ones(5)), InternalError);
}

TEST_CASE("both branches of x + x and of a diamond arrive") {
  Tape tape(true);
  const Var x = Var::leaf(Tensor::from({2}, std::vector<double>{3, 5}));
  const Var twice = add(tape, x, x);
  const Var y = add(tape, multiply(tape, twice, x), twice);  // 2x^2 + 2x
  tape.backward(y, ones(2));
  CHECK(x.gradient()->sum().data()[0] == 14);
  CHECK(x.gradient()->sum().data()[1] == 22);
  CHECK(tape.size() == 0);
}

TEST_CASE("gradients of several backward passes gather") {
  const Var x = Var::leaf(Tensor::from({1}, std::vector<double>{3}));
  for (int pass = 0; pass < 2; ++pass) {
    Tape tape(true);
    tape.backward(multiply(tape, x, x));
  }
  CHECK(x.gradient()->sum().data()[0] == 12);
}

TEST_CASE("a slot bound to a slice of a flat array adds into it, and into nothing else") {
  const Tensor flat = Tensor::full({8}, 10);
  const auto slot = Gradient::bound(flat.part(2, {3}));
  const Var x(Tensor::from({3}, std::vector<double>{1, 2, 3}), slot);
  Tape tape(true);
  tape.backward(multiply(tape, x, x), ones(3));
  const double wanted[] = {10, 10, 12, 14, 16, 10, 10, 10};
  for (Index i = 0; i < 8; ++i) CHECK(flat.data()[i] == wanted[i]);
  const auto [target, beta] = slot->target(1, 3);
  CHECK(target.data == flat.data() + 2);
  CHECK(beta == 1);
}

TEST_CASE("target of an empty slot is fresh storage to set; of a full one, storage to add to, its own") {
  Gradient slot({2, 2});
  const auto [fresh, set] = slot.target(2, 2);
  CHECK(set == 0);
  for (Index i = 0; i < 4; ++i) fresh.data[i] = 1;
  const Tensor held = slot.sum();
  const auto [again, adds] = slot.target(2, 2);
  CHECK(adds == 1);
  CHECK(again.data != held.data());
  CHECK(again(1, 1) == 1);
}

TEST_CASE("operations with several outputs: undefined where no gradient arrived, not run where none did") {
  Tape tape(true);
  const Var x = Var::leaf(ones(2));
  int runs = 0;
  const auto split = [&] {
    return tape.record_all({ones(2), Tensor(), ones(2)}, {&x}, [&runs, slot = x.gradient()](std::span<Tensor> dys) {
      ++runs;
      CHECK_FALSE(dys[0].defined());
      CHECK_FALSE(dys[1].defined());
      slot->add(dys[2]);
    });
  };
  const auto used = split();
  const auto unused = split();
  CHECK_FALSE(used[1].defined());
  tape.backward(used[2], Tensor::full({2}, 7));
  CHECK(runs == 1);
  CHECK(x.gradient()->sum().data()[1] == 7);
}

TEST_CASE("a tape that does not record keeps nothing, nor does one without wanted gradients") {
  Tape idle(false);
  const Var x = Var::leaf(ones(2));
  CHECK_FALSE(add(idle, x, x).wants_gradient());
  CHECK(idle.size() == 0);
  Tape tape(true);
  CHECK_FALSE(add(tape, x.detached(), ones(2)).wants_gradient());
  CHECK(tape.size() == 0);
}

TEST_CASE("a reshaped value shares the gradient slot") {
  Tape tape(true);
  const Var x = Var::leaf(random_tensor({2, 3}, 1));
  const Var flat = x.reshaped({6});
  tape.backward(scale(tape, flat, 3), ones(6));
  CHECK(x.gradient()->sum().shape() == Shape{2, 3});
  CHECK(x.gradient()->sum().data()[5] == 3);
}

TEST_CASE("a seed that the caller keeps is not written to") {
  Tape tape(true);
  const Var x = Var::leaf(random_tensor({5}, 1));
  const Tensor seed = ones(5);
  tape.backward(scale(tape, activate(tape, x, Activation::tanh), 4), seed);
  CHECK(seed.data()[0] == 1);
}

TEST_CASE("an entry's tensors are freed as soon as it has run") {
  const Tensor kept = ones(4);
  Tape tape(true);
  const Var x = Var::leaf(ones(4));
  const Var y = tape.record(ones(4), {&x}, [kept, slot = x.gradient()](Tensor dy) { slot->add(std::move(dy)); });
  CHECK_FALSE(kept.is_unique());
  tape.backward(y, ones(4));
  CHECK(kept.is_unique());
}

}  // namespace quipu
