// Published operations made of delta scans: the delta rule, without and with a gate.
#include <doctest/doctest.h>

#include <cmath>

#include "scan/delta_scan.h"
#include "scan/golden_op.h"

using namespace quipu;

namespace {

Outputs delta_rule(Tape& tape, OpCase& c, Decay decay) {
  DeltaScanInput in;
  in.decay = decay;
  in.q = c.leaf("input/q"), in.k = c.leaf("input/k"), in.v = c.leaf("input/v"), in.beta = c.leaf("input/beta");
  if (decay != Decay::none) in.log_decay = c.leaf("input/g");
  in.state = c.leaf("state0/S");
  in.scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(in.k.extent(3))));
  const DeltaScanOutput out = delta_scan(tape, in, Layout::plain(in.v.extent(0), in.v.extent(1)));
  return {out.y, {{"S", out.state}}};
}

}  // namespace

TEST_CASE("golden: the delta rule as an operation") {
  for (const char* name : {"op_T17_state", "op_T64"})
    OpCase("deltanet", name).check([](Tape& tape, OpCase& c) { return delta_rule(tape, c, Decay::none); });
}

TEST_CASE("golden: the gated delta rule as an operation") {
  for (const char* name : {"op_T17_state", "op_T64"})
    OpCase("gated_deltanet", name).check([](Tape& tape, OpCase& c) { return delta_rule(tape, c, Decay::scalar); });
}
