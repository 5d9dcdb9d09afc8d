// Writes a model with random weights and the tokenizer of bytes, of any shape, for measuring what the tools take.
//   random_model OUT.h5 [MIXER LAYERS DIM VOCAB]   e.g. rwkv4 12 768 50277
#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "train/model_checkpoint.h"

int main(int argc, char** argv) {
  using namespace quipu;
  const auto argument = [&](int i, const char* standard) { return std::string(i < argc ? argv[i] : standard); };
  if (argc < 2) {
    fmt::print(stderr, "random_model: no output; give OUT.h5 [MIXER LAYERS DIM VOCAB]\n");
    return 2;
  }
  try {
    ModelConfig config;
    config.mixer = argument(2, "rwkv4");
    config.layers = std::atol(argument(3, "12").c_str());
    config.dim = std::atol(argument(4, "768").c_str());
    config.vocab = std::atol(argument(5, "50277").c_str());
    LanguageModel model(config, false);
    model.parameters().initialise(1);
    CheckpointFacts facts{to_json(model.config()), "", {"bytes", {}}, {}, {}};
    save_model(argv[1], std::move(facts), model.parameters(), nullptr, nullptr);
  } catch (const Error& error) {
    fmt::print(stderr, "random_model: {}\n", error.what());
    return 1;
  }
}
