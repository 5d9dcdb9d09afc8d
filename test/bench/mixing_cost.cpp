// What mixing costs in training: of every mixer, the throughput of a model against the matrix products of the same
// model alone (the projections of all layers and the head, forward and backward), measured in turn.
//
//   mixing_cost [--dim 256 --layers 4 --heads 4 --vocab 1024 --batch 2 --length 2048 --repeats 5] [MIXER...]
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <vector>

#include "grad/ops_linear.h"
#include "mixers/registry.h"
#include "models/language_model.h"
#include "tensor/blas.h"

using namespace quipu;

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A model, the tokens it trains on, and inputs for its products alone.
class Subject {
 public:
  Subject(const ModelConfig& config, Index batch)
      : model_(config, true), batch_(batch), layout_(Layout::fresh(batch, config.length)) {
    model_.parameters().initialise(1);
    const auto n = static_cast<std::size_t>(batch * config.length);
    const Rng rng(1, 0, 0);
    for (std::size_t i = 0; i < n; ++i)
      tokens_.push_back(static_cast<std::int32_t>(rng.below(i, static_cast<std::uint64_t>(config.vocab))));
  }

  double model_seconds() {
    const double begin = seconds_now();
    model_.parameters().zero_gradients();
    Tape tape(true);
    ModelState state = model_.initial_state(batch_);
    const Context context{.layout = layout_, .training = true, .keep_state = false};
    tape.backward(model_.loss(tape, model_.forward(tape, tokens_, context, state), tokens_).loss);
    return seconds_now() - begin;
  }

  /// All products of the model: y = x W^T, then dx = dy W and dW = dy^T x; the head with its loss.
  double products_seconds() {
    const double begin = seconds_now();
    const Index rows = batch_ * layout_.length, dim = model_.config().dim;
    model_.parameters().zero_gradients();
    for (const auto& e : model_.parameters().trainable()) {
      if (!is_projection(e)) continue;
      Tape tape(true);
      const Var x = Var::leaf(Tensor::zeros({rows, e.parameter->shape()[1]}));
      tape.backward(linear(tape, x, e.parameter->var(), {}), Tensor::zeros({rows, e.parameter->shape()[0]}));
    }
    Tape tape(true);
    const Var hidden = Var::leaf(Tensor::zeros({batch_, layout_.length, dim}));
    tape.backward(model_.loss(tape, hidden, tokens_).loss);
    return seconds_now() - begin;
  }

 private:
  static bool is_projection(const Parameters::Entry& e) {
    return e.parameter->shape().rank() == 2 && e.name.ends_with(".weight") && e.name.starts_with("layers.");
  }

  LanguageModel model_;
  Index batch_;
  Layout layout_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace

int main(int argc, char** argv) {
  ModelConfig config;
  Index batch = 2, repeats = 5;
  std::vector<std::string> mixers, settings;
  config.vocab = 1024, config.length = 2048, config.heads = 4;
  CLI::App app("what mixing costs in training, against the matrix products alone");
  app.add_option("--dim", config.dim);
  app.add_option("--layers", config.layers);
  app.add_option("--heads", config.heads);
  app.add_option("--vocab", config.vocab);
  app.add_option("--length", config.length);
  app.add_option("--batch", batch);
  app.add_option("--repeats", repeats);
  app.add_option("--set", settings)->take_all();
  app.add_option("mixers", mixers);
  CLI11_PARSE(app, argc, argv);
  for (const std::string& s : settings) config.options[s.substr(0, s.find('='))] = s.substr(s.find('=') + 1);
  if (mixers.empty())
    for (const MixerEntry& entry : registry())
      if (!entry.channel) mixers.push_back(entry.name);

  fmt::print("{} threads, OpenBLAS {}, {} layers of width {}, {} heads, vocabulary {}, batch {} x {}\n\n",
             omp_get_max_threads(), blas::kernel_name(), config.layers, config.dim, config.heads, config.vocab, batch,
             config.length);
  fmt::print("| mixer | training, tokens/s | products alone, tokens/s | share |\n|---|---|---|---|\n");
  const auto tokens = static_cast<double>(batch * config.length);
  for (const std::string& mixer : mixers) {
    config.mixer = mixer;
    Subject subject(config, batch);
    subject.model_seconds(), subject.products_seconds();  // warm up
    std::vector<double> model, products;
    for (Index i = 0; i < repeats; ++i) {
      model.push_back(subject.model_seconds());
      products.push_back(subject.products_seconds());
    }
    fmt::print("| `{}` | {:.0f} | {:.0f} | {:.0f} % |\n", mixer, tokens / median(model), tokens / median(products),
               100 * median(products) / median(model));
    std::fflush(stdout);
  }
  return 0;
}
