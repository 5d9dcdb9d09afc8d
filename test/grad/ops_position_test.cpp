#include "grad/ops_position.h"

#include <numeric>

#include "op_checks.h"

namespace quipu {
namespace {

using Vars = std::vector<Var>;

/// offset, offset + 1, ... for each of B lanes.
std::vector<std::int64_t> lanes_of_positions(Index lanes, Index time, std::int64_t offset) {
  std::vector<std::int64_t> positions;
  for (Index i = 0; i < lanes * time; ++i) positions.push_back(offset + i % time);
  return positions;
}

}  // namespace

TEST_CASE("rope equals the golden files in both layouts") {
  const GoldenFile file("positions");
  int checked = 0;
  for (const std::string& name : file.cases()) {
    if (name == "sinusoidal") continue;
    const GoldenCase golden = file.at(name);
    const auto layout = name.find("half") != std::string::npos ? RopeLayout::half : RopeLayout::interleaved;
    const auto positions = lanes_of_positions(2, 7, static_cast<std::int64_t>(golden.number("offset")));
    check_golden(golden, [&](Tape& tape, const NamedVars& v) {
      return rope(tape, v.at("input/x"), positions, golden.number("base"), layout);
    });
    ++checked;
  }
  CHECK(checked == 4);
}

TEST_CASE("sinusoids equal the golden file in three conventions") {
  const GoldenCase golden = GoldenFile("positions").at("sinusoidal");
  const auto positions = lanes_of_positions(1, 12, 0);
  const auto check = [&](SinusoidLayout layout, const char* name) {
    INFO(name);
    CHECK(relative_error(sinusoids(layout, positions, 16), golden.tensor(name)) < kOutputTolerance);
  };
  check(SinusoidLayout::interleaved, "vaswani_interleaved");
  check(SinusoidLayout::halves, "transformer_xl_concatenated");
  check(SinusoidLayout::fairseq, "fairseq_concatenated_halfdim_minus1");
  CHECK_THROWS_AS(sinusoids(SinusoidLayout::halves, positions, 15), ShapeError);
  CHECK(sinusoids(SinusoidLayout::fairseq, positions, 2).data()[2] == static_cast<Real>(std::sin(1.0)));
}

TEST_CASE("gradients of rope, threads, and the form for one step") {
  const auto positions = lanes_of_positions(3, 50, 9);
  for (const RopeLayout layout : {RopeLayout::half, RopeLayout::interleaved}) {
    for (const Index width : {2, 6, 18, 140}) {
      CAPTURE(width);
      const Operation op = [&](Tape& tape, const Vars& v) { return Vars{rope(tape, v[0], positions, 100, layout)}; };
      const Tensor x = random_tensor({3, 50, 2, width}, 1);
      if (width < 20) check_gradients(op, {x});
      check_threads(op, {x});
      Tape tape(false);
      const Tensor y = op(tape, {x})[0].value();
      Tensor step = x.reshaped({150, 2, width}).clone();
      rope_into(step.view(), step.view(), positions, 100, layout);
      CHECK(same_bits(step.reshaped(x.shape()), y));
    }
  }
}

TEST_CASE("rotation keeps lengths, and inner products depend on the distance alone, far into a stream") {
  const Tensor x = random_tensor({1, 2, 1, 8}, 1);
  const auto product_at = [&](std::int64_t position) {
    const std::vector<std::int64_t> positions = {position, position + 3};
    Tape tape(false);
    const Tensor y = rope(tape, x, positions, 10000, RopeLayout::half).value();
    return std::inner_product(y.data(), y.data() + 8, y.data() + 8, 0.0);
  };
  const double near = product_at(0);
  CHECK(product_at(1000) == doctest::Approx(near).epsilon(1e-5));
  CHECK(product_at((1LL << 24) + 1) == doctest::Approx(near).epsilon(1e-5));
  CHECK(product_at((1LL << 33) + 7) == doctest::Approx(near).epsilon(1e-5));
}

TEST_CASE("rope refuses odd widths and positions that do not fit") {
  Tape tape(false);
  const auto positions = lanes_of_positions(1, 4, 0);
  CHECK_THROWS_AS(rope(tape, random_tensor({4, 2, 3}, 1), positions, 100, RopeLayout::half), ShapeError);
  CHECK_THROWS_AS(rope(tape, random_tensor({5, 2, 4}, 1), positions, 100, RopeLayout::half), ShapeError);
  CHECK_THROWS_AS(rope(tape, random_tensor({4, 2, 6}, 1), rope_angles(positions, 4, 100), RopeLayout::half),
                  ShapeError);
}

}  // namespace quipu
