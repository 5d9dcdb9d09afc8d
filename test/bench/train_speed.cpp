// Training throughput of one model: forward, backward, clipping and AdamW on random tokens, as JSON on stdout.
//
//   train_speed --mixer gsa --dim 256 --layers 4 --heads 4 --vocab 8192 --batch 8 --length 512 --steps 8
#include <omp.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <vector>

#include "models/language_model.h"
#include "tensor/arena.h"
#include "tensor/blas.h"
#include "tensor/linear_products.h"
#include "train/model_checkpoint.h"
#include "train/optimizer.h"

using namespace quipu;

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// FLOP/s of a large product in float, the fastest of a few.
double product_rate() {
  const Index m = 4096, n = 1024, k = 1024;
  const Tensor a = Tensor::full({m, k}, 1), b = Tensor::full({n, k}, 1), c({m, n});
  double best = 0;
  for (int i = 0; i < 8; ++i) {
    const double begin = seconds_now();
    blas::multiply_bt(c.matrix(), a.matrix(), b.matrix());
    best = std::max(best, 2.0 * static_cast<double>(m * n * k) / (seconds_now() - begin));
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  ModelConfig config;
  std::string preset;
  Index batch = 8, steps = 8, warmup = 2;
  std::vector<std::string> settings;
  bool checkpoint = false, openblas = false, bf16 = false;
  config.vocab = 8192, config.heads = 4;
  CLI::App app("training throughput of one model");
  app.add_option("--mixer", config.mixer);
  app.add_option("--preset", preset);
  app.add_option("--dim", config.dim);
  app.add_option("--layers", config.layers);
  app.add_option("--heads", config.heads);
  app.add_option("--vocab", config.vocab);
  app.add_option("--length", config.length);
  app.add_option("--channel-mixer", config.channel_mixer);
  app.add_option("--norm", config.norm);
  app.add_option("--positions", config.positions);
  app.add_option("--head", config.head);
  app.add_option("--batch", batch);
  app.add_option("--steps", steps);
  app.add_option("--warmup", warmup);
  app.add_option("--set", settings);
  app.add_flag("--checkpoint-activations", checkpoint);
  app.add_flag("--openblas", openblas, "its products, where oneDNN's would be taken");
  app.add_flag("--bf16", bf16, "linear layers in bf16");
  CLI11_PARSE(app, argc, argv);
  if (!openblas) blas::use(blas::fastest_library());
  if (bf16) set_linear_precision(Precision::bf16);
  for (const std::string& s : settings) config.options[s.substr(0, s.find('='))] = s.substr(s.find('=') + 1);
  if (!preset.empty()) apply_preset(config, preset);

  LanguageModel model(config, true);
  model.set_checkpoint_activations(checkpoint);
  Parameters& parameters = model.parameters();
  parameters.initialise(1);
  Optimizer optimizer({}, optimizer_groups(parameters));
  const auto n = static_cast<std::size_t>(batch * config.length);
  std::vector<std::int32_t> tokens(n), targets(n);
  const Rng rng(1, 0, 0);
  for (std::size_t i = 0; i < n; ++i) {
    tokens[i] = static_cast<std::int32_t>(rng.below(2 * i, static_cast<std::uint64_t>(config.vocab)));
    targets[i] = static_cast<std::int32_t>(rng.below(2 * i + 1, static_cast<std::uint64_t>(config.vocab)));
  }
  const Layout layout = Layout::fresh(batch, config.length);
  std::vector<double> seconds;
  double loss = 0;
  for (Index step = 0; step < warmup + steps; ++step) {
    const double begin = seconds_now();
    parameters.zero_gradients();
    Tape tape(true);
    ModelState state = model.initial_state(batch);
    const Var hidden = model.forward(tape, tokens, {.layout = layout, .training = true, .keep_state = false}, state);
    const LossOutput out = model.loss(tape, hidden, targets, {});
    tape.backward(out.loss);
    const GradientNorm norm = grad_norm(parameters.gradients());
    optimizer.step(parameters.values(), parameters.gradients(), 1e-3, clip_coefficient(norm.norm, 1));
    loss = out.nll_sum_nats / static_cast<double>(out.tokens);
    if (step >= warmup) seconds.push_back(seconds_now() - begin);
  }
  std::sort(seconds.begin(), seconds.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const std::size_t high_water = arena::usage().high_water;
  // What it would be if the products alone cost time: the causal half of attention, nothing for recomputation.
  const double rate = product_rate(), ceiling = rate / (3 * model.forward_flops(config.length / 2));
  const auto per_step = static_cast<double>(n);
  fmt::print(
      "{{\"mixer\": \"{}\", \"dim\": {}, \"layers\": {}, \"batch\": {}, \"length\": {}, \"threads\": {}, "
      "\"parameters\": {}, \"tokens_per_s_best\": {:.0f}, \"tokens_per_s_median\": {:.0f}, \"peak_rss_bytes\": {}, "
      "\"arena_high_water_bytes\": {}, \"loss_nats\": {:.4f}, "
      "\"product_gflops\": {:.0f}, \"ceiling_share\": {:.3f}, \"products\": \"{}\"}}\n",
      config.mixer, config.dim, config.layers, batch, config.length, omp_get_max_threads(), parameters.count(),
      per_step / seconds.front(), per_step / seconds[seconds.size() / 2], usage.ru_maxrss * 1024, high_water, loss,
      rate / 1e9, per_step / seconds[seconds.size() / 2] / ceiling, blas::product_names());
}
