#include "cli/train_command.h"

#include "base/error.h"
#include "cli/console.h"
#include "store/model_file.h"

namespace quipu {
namespace {

void add_size_options(const Section& s, TrainRequest& r) {
  add_count(s, "--layers", r.layers, 1, 10000, "Layers (default 4).");
  add_count(s, "--dim", r.dim, 1, 1 << 20, "Width of the model (default 256).");
}

/// What is stacked, how high and how wide.
void add_stack_options(const Section& s, TrainRequest& r) {
  add_text(s, "--mixer", r.mixer, "PATTERN",
           "Token mixer of the layers: a name (default gsa), or several that repeat up the stack, as in "
           "3xgsa,attention.");
  add_size_options(s, r);
}

void add_block_options(const Section& s, TrainRequest& r) {
  add_count(s, "--heads", r.heads, 1, 1 << 20, "Heads of every token mixer (default: the mixer's own).");
  add_text(s, "--channel-mixer", r.channel_mixer, "NAME",
           "Channel mixer of the layers, or none (default: the one that suits the mixer).");
  add_text(s, "--norm", r.norm, "layernorm|rmsnorm", "Normalisation (default: the one that suits the mixer).");
  add_text(s, "--norm-place", r.norm_place, "pre|post",
           "Whether a layer normalises what goes into it, or the sum that comes out (default: what suits the mixer).");
  add_text(s, "--positions", r.positions, "none|learned|sinusoidal",
           "Positions added to the embeddings (default: what suits the mixer).");
  add_text(s, "--head", r.head, "tied|untied", "Whether the output projection is the embedding table.");
  add_count(
      s, "--memory-tokens", r.memory_tokens, 0, 1 << 20,
      "Memory tokens around every segment of --seq-len tokens, as in the Recurrent Memory Transformer (default 0: "
      "none).");
  add_text(s, "--memory-mask", r.memory_mask, "causal|blocks",
           "Whether the memory tokens before or behind a segment see one another (default: what suits the mixer).");
  add_text(
      s, "--memory-state", r.memory_state, "fresh|carried",
      "Whether the mixers' own states start anew with every segment or cross its boundary (default: what suits the "
      "mixer).");
}

void add_setting_options(const Section& s, TrainRequest& r) {
  add_texts(s, "--set", r.set, "KEY=VALUE", "An option of a mixer, as slots=64, or gsa.slots=64 for one of several.");
  add_text(s, "--preset", r.preset, "gpt2|transformer++", "A published model; other options change it.");
}

void add_start_options(const Section& s, TrainRequest& r) {
  add_setting_options(s, r);
  add_text(s, "--init", r.train.init, "MODEL.h5",
           "Start from the weights of another checkpoint, whose model is taken over.");
  add_flag(s, "--list-mixers", r.list_mixers, "List the mixers with the bytes of their states, and stop.");
  add_text(s, "--describe-mixer", r.describe_mixer, "NAME", "Show a mixer's options with their defaults, and stop.");
}

void add_batch_options(const Section& s, TrainOptions& o) {
  add_count(s, "--batch", o.batch, 1, 1 << 20, "Windows in a batch.");
  add_value(s, {"--seq-len", "N", "Tokens in a segment (default 256; of a scored task its rows).", ""},
            [&o](const std::string& text) { o.length = parse_integer("--seq-len", text, 1, 1 << 24); });
  add_count(s, "--segments", o.segments, 1, 1 << 20,
            "Segments in a window, read one after another with the memory "
            "handed on.");
  add_value(s, {"--curriculum", "N,N,..", "Segments in the windows of equal parts of the run, as in 1,2,4,8.", ""},
            [&o](const std::string& text) { o.curriculum = parse_counts("--curriculum", text, 1, 1 << 20); });
  add_value(s,
            {"--bptt-depth", "N|all",
             "Segments before its own that the loss of a segment is differentiated through, exactly, in N + 1 backward "
             "passes (default all, in one).",
             ""},
            [&o](const std::string& text) {
              o.reach.depth = text == "all" ? GradientReach::kAll : parse_integer("--bptt-depth", text, 0, 1 << 20);
            });
  add_count(s, "--detach-every", o.reach.detach_every, 0, 1 << 20,
            "Cut all gradients at every N-th boundary of segments: cheaper than --bptt-depth, and not the same; 0: at "
            "none.");
  add_count(s, "--accumulate", o.accumulate, 1, 1 << 20, "Batches whose gradients make one step.");
  add_flag(s, "--carry-state", o.carry_state,
           "Each lane of the batch reads a share of the text in order, and its state goes on from window to window.");
  add_flag(
      s, "--checkpoint-activations", o.checkpoint_activations,
      "Recompute activations instead of keeping them, of each mixer, or of each of several segments: less memory, a "
      "third more time.");
}

template <typename Table>
std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.name);
  return names;
}

void add_rate_option(const Section& s, TrainRequest& r) {
  add_real(s, "--lr", r.train.schedule.peak, above(0), "Learning rate, at its peak.");
}

void add_optimiser_options(const Section& s, TrainRequest& r) {
  TrainOptions& o = r.train;
  add_choice(s, "--optimizer", r.optimizer, names_of(optimizer_table()), "Optimiser.");
  add_choice(s, "--schedule", r.schedule, names_of(schedule_table()), "How the learning rate falls.");
  add_count(s, "--warmup", r.warmup, 0, kMaxCount, "Steps in which the learning rate rises (default: 5 % of --steps).");
  add_count(s, "--steps", o.schedule.steps, 1, kMaxCount, "Optimiser steps in all.");
  add_real(s, "--min-lr", o.schedule.min, at_least(0), "Learning rate at the end.");
  add_real(s, "--weight-decay", o.optimizer.weight_decay, at_least(0), "Weight decay of the matrices.");
  add_real(s, "--beta1", o.optimizer.beta1, from_below(0, 1), "Decay of the mean of gradients (nag: the momentum).");
  add_real(s, "--beta2", o.optimizer.beta2, from_below(0, 1), "Decay of the mean of squared gradients.");
  add_real(s, "--clip", o.clip, at_least(0), "Longest gradient; 0: any.");
  add_real(s, "--dropout", o.dropout, from_below(0, 1), "Share of activations that are dropped.");
  add_real(s, "--layer-dropout", o.layer_dropout, from_below(0, 1), "Probability of leaving a layer out of a batch.");
  add_real(s, "--label-smoothing", o.label_smoothing, from_below(0, 1), "Share of the target spread over all tokens.");
}

void add_reading_options(const Section& s, TrainOptions& o) {
  add_count(s, "--eval-every", o.eval_every, 0, kMaxCount,
            "Steps between readings of the validation split; 0: ten readings in all.");
  add_count(s, "--eval-tokens", o.eval_tokens, 0, kMaxCount,
            "Tokens that a reading takes, evenly over the split; 0: all of it.");
  add_real(s, "--stop-below", o.stop_below_nats, above(0),
           "End, as finished, at the first reading whose loss is below X nats per token.");
}

void add_run_options(const Section& s, TrainRequest& r) {
  TrainOptions& o = r.train;
  add_value(s, {"-o,--output", "MODEL.h5", "The checkpoint; the best on validation is MODEL.best.h5.", ""},
            [&o](const std::string& text) { o.output = text; });
  add_count(s, "--save-every", o.save_every, 0, kMaxCount,
            "Steps between checkpoints; 0: with every reading of the validation split, and every ten minutes.");
  add_count(s, "--keep", o.keep, 0, 1000000, "Periodic checkpoints to keep, as MODEL.step-000500.h5.");
  add_text(s, "--log", o.log, "FILE.jsonl", "Write a line of JSON now and then.");
  add_count(s, "--log-every", o.log_every, 0, kMaxCount, "Steps between lines of the log; 0: a hundred lines in all.");
  add_text(s, "--resume", o.resume, "auto|never|FILE",
           "auto goes on where MODEL.h5 ended, if its options agree; never starts afresh; or a checkpoint to go on "
           "from.");
  add_duration(s, "--time-limit", r.time_limit_s, "Stop with all saved after this time, such as 1h30m.");
  add_flag(s, "--dry-run", r.dry_run, "Only say what the run would need: parameters, memory, FLOPs.");
}

}  // namespace

void add_precision_option(const Section& s, TrainRequest& r) {
  add_choice(
      s, "--precision", r.precision, {"f32", "bf16"},
      "Numbers that the linear layers multiply: bf16 is faster on CPUs with instructions for it; sums, weights and "
      "all else stay in float.");
}

void add_train_options(Command& tool, TrainRequest& request) {
  request.train.output.clear();
  add_argument(tool.section(), "DATA.h5", request.data, false, "The dataset, or - for standard input.");
  const Section run = tool.section("Run"), model = tool.section("Model"), optimiser = tool.section("Optimiser");
  add_run_options(run, request);
  add_reading_options(run, request.train);
  add_precision_option(run, request);
  add_stack_options(model, request);
  add_block_options(model, request);
  add_start_options(model, request);
  add_batch_options(tool.section("Batch"), request.train);
  add_rate_option(optimiser, request);
  add_optimiser_options(optimiser, request);
}

void add_training_options(Command& tool, TrainRequest& request) {
  add_block_options(tool.section("Block"), request);
  add_batch_options(tool.section("Batch"), request.train);
  add_optimiser_options(tool.section("Optimiser"), request);
  add_precision_option(tool.section("Optimiser"), request);
  add_reading_options(tool.section("Validation"), request.train);
}

void add_shape_options(const Section& section, TrainRequest& request) {
  add_size_options(section, request);
  add_block_options(section, request);
  add_setting_options(section, request);
}

std::vector<std::string> training_words(const Command& tool) {
  return given_words(tool.app(), {"Block", "Batch", "Optimiser", "Validation"});
}

ModelConfig resolve_model(const TrainRequest& r) {
  ModelConfig config;
  if (!r.train.init.empty()) config = config_from_json(CheckpointFile(r.train.init).facts().config);
  if (!r.preset.empty()) apply_preset(config, r.preset);
  if (r.mixer) config.mixer = *r.mixer;
  if (r.channel_mixer) config.channel_mixer = *r.channel_mixer;
  if (r.norm) config.norm = *r.norm;
  if (r.norm_place) config.norm_place = *r.norm_place;
  if (r.memory_tokens) config.memory_tokens = *r.memory_tokens;
  if (r.memory_mask) config.memory_mask = *r.memory_mask;
  if (r.memory_state) config.memory_state = *r.memory_state;
  if (r.positions) config.positions = *r.positions;
  if (r.head) config.head = *r.head;
  if (r.layers) config.layers = *r.layers;
  if (r.dim) config.dim = *r.dim;
  if (r.heads) config.heads = *r.heads;
  set_options(config, r.set);
  return config;
}

TrainOptions resolve(const TrainRequest& r, const Common& common) {
  if (r.data.empty()) throw UsageError("DATA.h5: is missing; give a dataset, made by `convert text`");
  if (r.train.output.empty() && !r.dry_run) throw UsageError("--output: is missing; say where the model goes with -o");
  refuse_input_as_output(r.train.log, {r.data, r.train.init});
  TrainOptions o = r.train;
  if (r.dry_run) {  // touches no file
    o.resume = "never";
    o.output.assign(1, '-');
  }
  o.model = resolve_model(r);
  o.precision = r.precision == "bf16" ? Precision::bf16 : Precision::f32;
  o.optimizer.kind = optimizer_from_name(r.optimizer);
  o.schedule.schedule = schedule_from_name(r.schedule);
  o.schedule.warmup = r.warmup ? *r.warmup : o.schedule.steps / 20;
  o.seed = common.seed;
  return o;
}

}  // namespace quipu
