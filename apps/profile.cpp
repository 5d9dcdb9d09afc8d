#include "cli/app.h"
#include "cli/command_line.h"
#include "cli/mixer_list.h"
#include "cli/profile_run.h"

namespace {

using namespace quipu;

const ToolInfo kInfo = {
    .name = "profile",
    .summary = "show what a model costs as the length grows",
    .description =
        R"(Measures a checkpoint, or models of several mixers with random weights, at one length after another, and says
what a token takes in time and memory, next to what this machine could do at best.

Modes, at a length of n tokens:

  decode   one more token is drawn after n tokens that were read; then the
           next, as long as they are few beside n
  prefill  n tokens are read, in the chunks in which generate reads its prompts
  train    forward, backward and AdamW on sequences of n tokens

Each cell (a model, a length, a number of threads) runs in a process of its own: once unmeasured, then again and again,
until the quartiles of the times say that the median is known to 1 %, or --time is over. A first run that takes longer
than that is the one that counts ("once"). The prefix of decode is read before it, by the clock of the model's own
prefill: of long lengths of attention that takes minutes.

Columns of the table, and of --tsv and --json:

  a token     median of seconds per token, of all sequences of the batch
              together; spread: half the distance of the quartiles
  state       what a sequence keeps, measured; it must be what the model's own
              formula says, else the run fails
  memory      the most that the process had resident, beyond what it takes
              idle: weights, state and all else
  FLOPs       of a token: two for every weight that it is multiplied with, and
              two for every multiply-add of the mixing itself; in training
              three times that; nothing for recomputing; no head where a prompt
              is read
  bytes       that must move between memory and processor for a token, at
              least: the weights once a step or chunk, the state in, and out
              again where its size is fixed; in training twelve passes over the
              parameters and two over the activations that wait for the
              backward pass
  of ceiling  the time that FLOPs and bytes would take at the machine's own
              rates, the larger of the two, over the time taken

The rates, of a large matrix product and of reading a large array, are probed in the same run with as many threads. What
fits the caches can pass the memory's ceiling.

A length that cannot be (beyond the context of the model, or of the memory) is noted, and the rest goes on. A verdict
for each mixer says whether its state is constant, and whether its time is flat (within x1.25) or grows with the length.

--by-op runs each cell for half of --time more and says where the time goes, by kind of operation, forward and backward;
"other" is what is inside none. When drawing, "token mixing" and "channel mixing" are what mixers do beside their
projections.

A signal ends the cell at hand; what was measured is reported, with status 75.)",
    .examples = {{"profile gsa.h5 --plot cost.svg", "What does drawing from this model cost?"},
                 {"profile --mixer gsa,attention --dim 256 --lengths 128:8192", "A fixed memory and a growing one:"},
                 {"profile --mixer gsa --mode train --lengths 512 --batch 8 --by-op --threads 1,2",
                  "Where does the time of a training step go?"},
                 {"profile --mixer all --mode prefill --lengths 2048 --tsv > prefill.tsv",
                  "All mixers, for a script:"}},
    .config_example = "mixer = \"gsa,attention\"\nlengths = \"128:4096\"\ndim = 512\nthreads = \"1,2\"",
    .sections = {{"MIXERS", mixers_text}},
    .thread_list = true,
    .stops_cleanly = true,
};

}  // namespace

int main(int argc, char** argv) {
  ProfileRequest request;
  return run_app(kInfo, argc, argv, [&](Command& tool) {
    add_profile_options(tool, request);
    tool.runs([&, command = command_line(argc, argv)](const Common& common) {
      return run_profile(request, common, command);
    });
  });
}
