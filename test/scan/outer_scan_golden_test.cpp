// Published operations made of outer scans: linear attention and the two passes of Gated Slot Attention.
#include <doctest/doctest.h>

#include <cmath>

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

TEST_CASE("golden: gated linear attention as an operation, under strong decay too") {
  for (const char* name : {"op_T17_state", "op_T64_strong_decay"})
    OpCase("gla", name).check([](Tape& tape, OpCase& c) -> Outputs {
      OuterScanInput in;
      in.decay = Decay::key, in.k = c.leaf("input/k"), in.v = c.leaf("input/v"), in.log_decay = c.leaf("input/g");
      in.q = scale(tape, c.leaf("input/q"), static_cast<Real>(1 / std::sqrt(8.0)));
      in.state = c.leaf("state0/S");
      const OuterScanOutput out = outer_scan(tape, in, Layout::plain(in.k.extent(0), in.k.extent(1)));
      return {out.y, {{"S", out.state}}};
    });
}

TEST_CASE("golden: retention as an operation") {
  for (const char* name : {"op_T17", "op_state"})
    OpCase("retnet", name).check([](Tape& tape, OpCase& c) -> Outputs {
      OuterScanInput in;
      in.decay = Decay::scalar, in.k = c.leaf("input/k"), in.v = c.leaf("input/v"), in.state = c.leaf("state0/S");
      in.q = scale(tape, c.leaf("input/q"), static_cast<Real>(1 / std::sqrt(16.0)));
      Tensor g({in.k.extent(0), in.k.extent(1), 2});
      for (Index i = 0; i < g.count(); ++i)
        g.data()[i] = static_cast<Real>(std::log1p(-std::exp2(-5.0 - static_cast<double>(i % 2))));
      in.log_decay = g;
      const OuterScanOutput out = outer_scan(tape, in, Layout::plain(in.k.extent(0), in.k.extent(1)));
      return {out.y, {{"S", out.state}}};
    });
}
