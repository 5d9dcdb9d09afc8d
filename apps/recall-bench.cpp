#include "cli/app.h"
#include "cli/recall_make.h"
#include "cli/recall_run.h"
#include "cli/recall_sweep.h"

using namespace quipu;

namespace {

const ToolInfo kInfo = {
    .name = "recall-bench",
    .summary = "measure how much a model remembers",
    .description =
        R"(Makes tasks that ask for something that was read before, and scores models on them, with chance and ceiling
beside every figure.)",
    .examples = {{"recall-bench make mqar -o mqar.h5 --length 64 --pairs 4 --train 100000 --test 3000",
                  "Pairs of key and value, then queries:"},
                 {"train mqar.h5 -o gsa.h5 --mixer gsa --layers 2 --dim 64", "A model that learns it:"},
                 {"recall-bench run gsa.h5 mqar.h5 --min-accuracy 0.9", "How much does it remember?"},
                 {"recall-bench sweep mqar --task mqar --length 64,256 --pairs 4,16 --mixer attention,gsa,gla "
                  "--dim 64,128 --lr 1e-3,3e-3 --seeds 1,2,3 --plot recall.svg",
                  "Compare mixers, at several widths, each at its best rate:"}},
    .config_example = "[make]\ntrain = 20000\nlength = 256",
    .has_gate = true,
    .stops_cleanly = true,
    .stopping_command = "sweep",
};

}  // namespace

int main(int argc, char** argv) {
  RecallMakeOptions make;
  RecallRunOptions run;
  RecallSweepOptions sweep;
  return run_app(kInfo, argc, argv, [&](Command& tool) {
    add_recall_list(tool);
    add_recall_make(tool, make);
    add_recall_run(tool, run);
    add_recall_sweep(tool, sweep);
  });
}
