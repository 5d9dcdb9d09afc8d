// Memories of slots against the published numbers: layers of MemSizer, ABC and Linformer as operations.
#include "grad/ops_embed.h"
#include "grad/ops_rows.h"
#include "mixers/golden_layer.h"
#include "mixers/slot_memory.h"
#include "scan/golden_op.h"
#include "scan/log_sum_scan.h"

using namespace quipu;

TEST_CASE("golden: MemSizer, causal") {
  for (const char* name : {"causal_T17", "causal_T64", "causal_state"})
    check_layer("memsizer", name, "memsizer", {.leaves = {{"position", {"prefix_len0"}}}});
}

TEST_CASE("golden: bounded-memory control as an operation, its normaliser carried") {
  for (const char* name : {"op_T17", "op_state"})
    OpCase("abc", name).check([](Tape& tape, OpCase& c) -> Outputs {
      const Var q = c.leaf("input/q"), s = c.leaf("input/s");
      const Layout layout = Layout::plain(q.extent(0), q.extent(1));
      const LogSumScanOutput share = log_sum_scan(tape, s, c.leaf("state0/z"), layout);
      Var keys = c.leaf("state0/hk"), values = c.leaf("state0/hv");
      const Var o = slot_memory(tape,
                                {.q = q,
                                 .k = c.leaf("input/k"),
                                 .v = c.leaf("input/v"),
                                 .key_weight = share.weight,
                                 .value_weight = share.weight,
                                 .log_decay = share.log_decay,
                                 .scale = static_cast<Real>(1 / std::sqrt(8.0))},
                                layout, keys, values);
      return {o, {{"hk", keys}, {"hv", values}, {"z", share.state}}};
    });
}

TEST_CASE("golden: Linformer's causal form as an operation") {
  for (const auto& [name, offset] : {std::pair{"causal_abc_form_T17", 0}, {"causal_abc_form_state", 5}})
    OpCase("linformer", name).check([at = offset](Tape& tape, OpCase& c) -> Outputs {
      const Var q = c.leaf("input/q");
      const Index batch = q.extent(0), length = q.extent(1);
      std::vector<std::int32_t> rows;
      for (Index i = 0; i < batch * length; ++i) rows.push_back(static_cast<std::int32_t>(at + i % length));
      const auto weights = [&](const char* table) {
        return repeat_heads(tape, embedding(tape, rows, c.leaf(table), {batch, length}), 2);
      };
      Var keys = c.leaf("state0/hk"), values = c.leaf("state0/hv");
      const Var o = slot_memory(tape,
                                {.q = q,
                                 .k = c.leaf("input/k"),
                                 .v = c.leaf("input/v"),
                                 .key_weight = weights("param/E"),
                                 .value_weight = weights("param/F"),
                                 .scale = static_cast<Real>(1 / std::sqrt(8.0))},
                                Layout::plain(batch, length), keys, values);
      return {o, {{"hk", keys}, {"hv", values}}};
    });
}
