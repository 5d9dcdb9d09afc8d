// Published operations made of the wkv scan: RWKV-4's wkv and AFT-simple.
#include <doctest/doctest.h>

#include "grad/ops_pointwise.h"
#include "scan/golden_op.h"
#include "scan/wkv4_scan.h"

using namespace quipu;

TEST_CASE("golden: wkv as an operation") {
  for (const char* name : {"wkv_T17", "wkv_T64_large_k", "wkv_state"})
    OpCase("rwkv4", name).check([](Tape& tape, OpCase& c) -> Outputs {
      Wkv4Input in;
      in.k = c.leaf("input/k"), in.v = c.leaf("input/v");
      in.log_decay = scale(tape, activate(tape, c.leaf("param/time_decay"), Activation::exp), -1);
      in.bonus = c.leaf("param/time_first");
      in.a = c.leaf("state0/aa"), in.b = c.leaf("state0/bb"), in.p = c.leaf("state0/pp");
      const Wkv4Output out = wkv4_scan(tape, in, Layout::plain(in.k.extent(0), in.k.extent(1)));
      return {out.y, {{"aa", out.a}, {"bb", out.b}, {"pp", out.p}}};
    });
}

TEST_CASE("golden: AFT-simple as an operation") {
  for (const char* name : {"aft_simple_causal_T17", "aft_simple_state"})
    OpCase("aft", name).check([](Tape& tape, OpCase& c) -> Outputs {
      Wkv4Input in;
      in.k = c.leaf("input/k"), in.v = c.leaf("input/v");
      in.a = c.leaf("state0/num"), in.b = c.leaf("state0/den"), in.p = c.leaf("state0/m");
      const Wkv4Output out = wkv4_scan(tape, in, Layout::plain(in.k.extent(0), in.k.extent(1)));
      return {gated(tape, c.leaf("input/q"), out.y, Activation::sigmoid),
              {{"num", out.a}, {"den", out.b}, {"m", out.p}}};
    });
}
