// What mixing costs in training: of every mixer, the throughput of a model (forward, backward, AdamW) against the
// matrix products of the same model alone (of all layers and the head, forward and backward), measured in turn: by the
// library that training uses, and by OpenBLAS's sgemm.
//
//   mixing_cost [--dim 256 --layers 4 --heads 4 --vocab 8192 --batch 8 --length 512 --repeats 5] [MIXER...]
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "base/stopwatch.h"
#include "mixers/registry.h"
#include "models/language_model.h"
#include "tensor/blas.h"
#include "train/model_checkpoint.h"
#include "train/optimizer.h"

using namespace quipu;

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A model, and the tokens it trains on.
class Subject {
 public:
  Subject(const ModelConfig& config, Index batch)
      : model_(config, true), batch_(batch), layout_(Layout::fresh(batch, config.length)) {
    Parameters& parameters = model_.parameters();
    parameters.initialise(1);
    optimizer_ = Optimizer({}, optimizer_groups(parameters));
    const auto n = static_cast<std::size_t>(batch * config.length);
    const Rng rng(1, 0, 0);
    for (std::size_t i = 0; i < n; ++i)
      tokens_.push_back(static_cast<std::int32_t>(rng.below(i, static_cast<std::uint64_t>(config.vocab))));
  }

  double model_seconds() {
    const Stopwatch watch;
    Parameters& parameters = model_.parameters();
    parameters.zero_gradients();
    {
      Tape tape(true);
      ModelState state = model_.initial_state(batch_);
      const Context context{.layout = layout_, .training = true, .keep_state = false};
      tape.backward(model_.loss(tape, model_.forward(tape, tokens_, context, state), tokens_).loss);
    }
    const GradientNorm norm = grad_norm(parameters.gradients());
    optimizer_.step(parameters.values(), parameters.gradients(), 1e-3, clip_coefficient(norm.norm, 1));
    return watch.seconds();
  }

  /// All products of the model: y = x W^T, dx = dy W and dW = dy^T x.
  double products_seconds(blas::Library library) {
    const blas::Library before = blas::library();
    blas::use(library);
    double seconds = 0;
    for (const auto& e : model_.parameters().trainable())
      if (is_projection(e)) seconds += products_seconds(e.parameter->shape()[0], e.parameter->shape()[1]);
    const ModelConfig& config = model_.config();
    seconds += products_seconds(config.vocab, config.dim);
    blas::use(before);
    return seconds;
  }

 private:
  static bool is_projection(const Parameters::Entry& e) {
    return e.parameter->shape().rank() == 2 && e.name.ends_with(".weight") && e.name.starts_with("layers.");
  }

  /// Of one matrix [out,in]; a wide one meets the rows in slices, as the head does.
  double products_seconds(Index out, Index in) const {
    constexpr Index kWide = 4096, kSlice = 512;
    const Index all = batch_ * layout_.length, rows = out > kWide ? std::min(all, kSlice) : all;
    const Tensor x = Tensor::zeros({rows, in}), y = Tensor::zeros({rows, out}), w = Tensor::zeros({out, in}),
                 dx = Tensor::zeros({rows, in}), dw = Tensor::zeros({out, in});
    const Stopwatch watch;
    for (Index row = 0; row < all; row += rows) {
      blas::multiply_bt(y.matrix(), x.matrix(), w.matrix());
      blas::multiply(dx.matrix(), y.matrix(), w.matrix());
      blas::multiply_at(dw.matrix(), y.matrix(), x.matrix());
    }
    return watch.seconds();
  }

  LanguageModel model_;
  Optimizer optimizer_{{}, {}};
  Index batch_;
  Layout layout_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace

int main(int argc, char** argv) {
  ModelConfig config;
  Index batch = 8, repeats = 5;
  std::vector<std::string> mixers, settings;
  config.vocab = 8192, config.length = 512, config.heads = 4;
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

  blas::use(blas::fastest_library());
  fmt::print("{} threads, {}, {} layers of width {}, {} heads, vocabulary {}, batch {} x {}\n\n", omp_get_max_threads(),
             blas::product_names(), config.layers, config.dim, config.heads, config.vocab, batch, config.length);
  fmt::print("| mixer | training, tokens/s | products alone | share | by sgemm | share |\n|---|---|---|---|---|---|\n");
  const auto tokens = static_cast<double>(batch * config.length);
  for (const std::string& mixer : mixers) {
    config.mixer = mixer;
    Subject subject(config, batch);
    const blas::Library library = blas::library();
    subject.model_seconds(), subject.products_seconds(library);  // warm up
    std::vector<double> model, products, sgemm;
    for (Index i = 0; i < repeats; ++i) {
      model.push_back(subject.model_seconds());
      products.push_back(subject.products_seconds(library));
      sgemm.push_back(subject.products_seconds(blas::Library::openblas));
    }
    const double step = median(model), alone = median(products), by_sgemm = median(sgemm);
    fmt::print("| `{}` | {:.0f} | {:.0f} | {:.0f} % | {:.0f} | {:.0f} % |\n", mixer, tokens / step, tokens / alone,
               100 * alone / step, tokens / by_sgemm, 100 * by_sgemm / step);
    std::fflush(stdout);
  }
  return 0;
}
