#include "base/log.h"
#include "base/stop.h"
#include "cli/app.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/mixer_list.h"
#include "cli/progress.h"
#include "cli/train_command.h"
#include "cli/train_report.h"
#include "train/trainer.h"

namespace {

using namespace quipu;

const ToolInfo kInfo = {
    .name = "train",
    .summary = "train a language model on a dataset",
    .description =
        "Trains a model on the split `train` of a dataset and measures it on the split `valid`. MODEL.h5 is the last "
        "checkpoint, from which the same command goes on bit for bit; MODEL.best.h5 is the best on validation.\n\n"
        "Says first what the model, the data and the memory are, then now and then a line with the loss per token in "
        "nats, the perplexity, the speed and the time left. Losses are natural logarithms.\n\n"
        "SIGTERM, SIGINT, SIGUSR1 and --time-limit stop the run with all saved and status 75.",
    .examples = {{"train corpus.h5 -o gsa.h5 --mixer gsa", "Train Gated Slot Attention:"},
                 {"train corpus.h5 -o hybrid.h5 --mixer 3xgsa,attention --layers 8 --dim 512 --log hybrid.jsonl",
                  "A hybrid, with a log:"},
                 {"train book.h5 -o book-model.h5 --carry-state --seq-len 128",
                  "Carry the memory from window to window over a whole book:"},
                 {"train corpus.h5 -o big.h5 --dim 1024 --layers 24 --dry-run", "What would it need?"}},
    .config_example =
        "# train.toml\nmixer = \"gsa\"\nlayers = 8\ndim = 512\nset = [\"slots=32\"]\nsteps = 1e4\n"
        "lr = 1e-3",
    .sections = {{"MIXERS", mixers_text}},
    .stops_cleanly = true,
};

Status dry_run(Trainer& trainer, bool json) {
  const auto memory = trainer.estimate();
  if (!memory) return Status::kStopped;
  print_dry_run(trainer, *memory, json);
  return Status::kDone;
}

void note_stop(const TrainSummary& summary) {
  const std::string reason = stop_reason();  // none yet where the time limit would not have lasted for a step
  log_note("stopped by {} after step {} of {}, with all saved in {}; the same command goes on",
           reason.empty() ? std::string_view("the time limit") : std::string_view(reason), summary.step, summary.steps,
           summary.last);
}

Status train(const TrainRequest& request, const Common& common, const std::string& command) {
  ModelConfig config = resolve_model(request);
  config.length = request.train.length > 0 ? request.train.length : kUsualLength;
  if (request.list_mixers) return print_mixers(config, common.json), Status::kDone;
  if (!request.describe_mixer.empty()) return print_mixer(request.describe_mixer, config, common.json), Status::kDone;

  TrainOptions options = resolve(request, common);
  options.command = command;
  if (request.time_limit_s) set_time_limit(*request.time_limit_s);
  const Dataset data(request.data);
  Trainer trainer(data, options);
  note_start(trainer, data, common);
  if (request.dry_run) return dry_run(trainer, common.json);
  if (trainer.progress().step < options.schedule.steps)
    if (const auto memory = trainer.estimate()) note_memory(*memory);

  Progress bar("train", "steps", static_cast<double>(options.schedule.steps),
               static_cast<double>(trainer.progress().step));
  const TrainSummary summary =
      trainer.run({.on_line = [&](const LogLine& line) { log_note("{}", line_text(line)); },
                   .on_step =
                       [&](Index step, double loss) {
                         if (console_is_terminal())
                           bar.update(static_cast<double>(step), fmt::format("loss {:.4f}", loss));
                       }});
  bar.finish();
  if (summary.stopped) note_stop(summary);
  print_summary(summary, trainer, common.json, options.output == "-" ? Stream::kError : Stream::kOutput);
  return summary.stopped ? Status::kStopped : Status::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  TrainRequest request;
  return run_app(kInfo, argc, argv, [&](Command& tool) {
    add_train_options(tool, request);
    tool.runs(
        [&, command = command_line(argc, argv)](const Common& common) { return train(request, common, command); });
  });
}
