#pragma once
#include <memory>
#include <string>

#include "models/language_model.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A model with random weights, large enough for its predictions to depend on what it read.
inline std::unique_ptr<LanguageModel> small_model(const std::string& mixer, Index vocab, std::uint64_t seed = 1,
                                                  Index memory_tokens = 0) {
  ModelConfig config;
  config.memory_tokens = memory_tokens;
  if (memory_tokens > 0) config.length = 10;
  config.vocab = vocab;
  config.dim = 24;
  config.layers = 2;
  config.heads = 2;
  config.mixer = mixer;
  if (mixer == "gsa") config.options.emplace("slots", "5");
  auto model = std::make_unique<LanguageModel>(config, false);
  model->parameters().initialise(seed);
  for (const auto& entry : model->parameters().trainable())
    if (entry.parameter->shape().rank() >= 2)
      for (Real& weight : entry.parameter->value().span()) weight *= 10;
  return model;
}

}  // namespace quipu::inline QUIPU_REAL_NS
