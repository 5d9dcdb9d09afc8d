// How fast a prompt is read in chunks of several sizes, beside the forward pass of training on as many windows at once
// as make 4,096 tokens: tokens/s, medians and the fastest, all measured in turn.
//
//   prompt_chunks [--dim 256 --layers 4 --heads 4 --vocab 4096 --tokens 8192 --repeats 5] [MIXER...]
//   --cpu-time counts the processor's seconds: for one thread on a busy machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include "models/language_model.h"
#include "train/generator.h"

using namespace quipu;

namespace {

bool cpu_time = false;

double seconds_now() {
  if (cpu_time) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<std::int32_t> random_tokens(Index count, Index vocab) {
  const Rng rng(1, 0, 0);
  std::vector<std::int32_t> tokens;
  for (Index i = 0; i < count; ++i)
    tokens.push_back(
        static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(vocab))));
  return tokens;
}

double read_seconds(const LanguageModel& model, std::span<const std::int32_t> tokens, Index chunk) {
  Generator generator(model, {}, chunk);
  const double begin = seconds_now();
  generator.read(tokens);
  generator.end_piece();
  return seconds_now() - begin;
}

/// As training does: windows of 512 beside each other, 4,096 tokens a batch, activations kept, without the head.
double training_seconds(const LanguageModel& model, std::span<const std::int32_t> tokens) {
  constexpr Index kLanes = 8, kLength = 512;
  const Layout layout = Layout::fresh(kLanes, kLength);
  const double begin = seconds_now();
  for (std::size_t at = 0; at + kLanes * kLength <= tokens.size(); at += kLanes * kLength) {
    Tape tape(true);
    ModelState state = model.initial_state(kLanes);
    const Context context{.layout = layout, .training = true, .keep_state = false};
    model.forward(tape, tokens.subspan(at, kLanes * kLength), context, state);
  }
  return seconds_now() - begin;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("reading speed of prompts against the size of their chunks");
  ModelConfig config;
  config.vocab = 4096, config.heads = 4;
  Index count = 8192;
  int repeats = 5;
  std::vector<std::string> mixers = {"gsa", "attention", "rwkv7"};
  app.add_option("--dim", config.dim), app.add_option("--layers", config.layers);
  app.add_option("--heads", config.heads), app.add_option("--vocab", config.vocab);
  app.add_option("--memory-tokens", config.memory_tokens), app.add_option("--seq-len", config.length);
  app.add_option("--tokens", count), app.add_option("--repeats", repeats), app.add_option("MIXER", mixers);
  app.add_flag("--cpu-time", cpu_time);
  CLI11_PARSE(app, argc, argv);
  const std::vector<Index> chunks = {64, 128, 256, 512, 1024, 2048, 4096};
  fmt::print("{:18}", "tokens/s, chunk");
  for (const Index chunk : chunks) fmt::print("{:>8}", chunk);
  fmt::print("{:>10}\n", "training");
  for (const std::string& mixer : mixers) {
    config.mixer = mixer;
    config.options.clear();
    if (mixer == "attention") config.options.emplace("window", "256");
    LanguageModel model(config, true);
    model.parameters().initialise(1);
    const auto tokens = random_tokens(count, config.vocab);
    std::vector<std::vector<double>> seconds(chunks.size() + 1);
    for (int repeat = 0; repeat <= repeats; ++repeat)
      for (std::size_t i = 0; i < seconds.size(); ++i) {
        const double time =
            i < chunks.size() ? read_seconds(model, tokens, chunks[i]) : training_seconds(model, tokens);
        if (repeat > 0) seconds[i].push_back(time);
      }
    fmt::print("{:18}", mixer);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const double read = static_cast<double>(i < chunks.size() ? count : count / 4096 * 4096);
      fmt::print("{:>{}.0f}", read / median(seconds[i]), i < chunks.size() ? 8 : 10);
    }
    fmt::print("\n{:18}", "  fastest");
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const double read = static_cast<double>(i < chunks.size() ? count : count / 4096 * 4096);
      fmt::print("{:>{}.0f}", read / *std::ranges::min_element(seconds[i]), i < chunks.size() ? 8 : 10);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  return 0;
}
