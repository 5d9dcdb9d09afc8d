// Published operations made of outer scans: linear attention and the two passes of Gated Slot Attention.
#include <doctest/doctest.h>

#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_quotient.h"
#include "scan/golden_op.h"
#include "scan/outer_scan.h"

using namespace quipu;

TEST_CASE("golden: linear attention as an operation") {
  for (const char* name : {"case_T17", "case_T64", "case_state"})
    OpCase("linear_attention", name).check([](Tape& tape, OpCase& c) -> Outputs {
      OuterScanInput in;
      in.q = activate(tape, c.leaf("input/q"), Activation::elu1);
      in.k = activate(tape, c.leaf("input/k"), Activation::elu1);
      in.v = c.leaf("input/v");
      in.state = c.leaf("state0/S");
      in.normaliser = true;
      in.z = c.leaf("state0/z");
      const OuterScanOutput out = outer_scan(tape, in, Layout::plain(in.v.extent(0), in.v.extent(1)));
      return {quotient(tape, out.y, out.denominator, 1e-6), {{"S", out.state}, {"z", out.z}}};
    });
}

TEST_CASE("golden: gated slots as an operation, under strong decay too") {
  for (const char* name : {"op_T17_state", "op_T64_strong_decay"})
    OpCase("gsa", name).check([](Tape& tape, OpCase& c) -> Outputs {
      const Var q = c.leaf("input/q"), k = c.leaf("input/k"), v = c.leaf("input/v");
      const Var s = c.leaf("input/s"), g = c.leaf("input/g");
      const Layout layout = Layout::plain(q.extent(0), q.extent(1));
      OuterScanInput keys;
      keys.decay = Decay::value, keys.q = q, keys.k = k, keys.v = s, keys.log_decay = g,
      keys.state = c.leaf("state0/hk");
      const OuterScanOutput scores = outer_scan(tape, keys, layout);
      OuterScanInput values;
      values.decay = Decay::key, values.q = softmax_rows(tape, scores.y, 1), values.k = s, values.v = v;
      values.log_decay = g, values.state = c.leaf("state0/hv");
      const OuterScanOutput out = outer_scan(tape, values, layout);
      return {out.y, {{"hk", scores.state}, {"hv", out.state}}};
    });
}
