#include "profile/cost.h"

#include <algorithm>

#include "train/generator.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr double kParameterPasses = 12;

double head_flops(const LanguageModel& model) {
  return 2 * static_cast<double>(model.config().vocab * model.config().dim);
}

/// The mean over positions 1 .. length. The cost of mixers is linear in it, or stays; long stretches are sampled at the
/// middles of equal pieces.
double mean_forward_flops(const LanguageModel& model, Index length) {
  constexpr Index kMostSamples = 1024;
  const Index samples = std::min(length, kMostSamples);
  double sum = 0;
  for (Index i = 0; i < samples; ++i) {
    const Index begin = i * length / samples, end = (i + 1) * length / samples;
    sum += model.forward_flops((begin + 1 + end) / 2) * static_cast<double>(end - begin);
  }
  return sum / static_cast<double>(length);
}

double state_traffic(const LanguageModel& model, Index length) {
  const auto bytes = static_cast<double>(model.state_bytes(length));
  return model.memory() == Memory::fixed ? 2 * bytes : bytes;
}

}  // namespace

double weight_bytes(const LanguageModel& model, bool head) {
  const bool tied = model.config().head == "tied";
  double bytes = 0;
  for (const auto& [name, parameter, begin, end] : model.parameters().all()) {
    if (name == "positions.weight" || name == "memory.weight" || parameter->traits().by_position) continue;
    if (name == "embedding.weight" && !(head && tied)) continue;
    if (name.starts_with("head.") && !head) continue;
    bytes += parameter->is_packed() ? static_cast<double>(parameter->packed().bytes().size())
                                    : static_cast<double>(parameter->shape().count()) * sizeof(float);
  }
  return bytes;
}

Index prompt_chunk(Index lanes) {
  constexpr Index kRows = 1024;
  return std::clamp(kRows / lanes, Index{1}, Generator::kChunk);
}

TokenCost token_cost(const LanguageModel& model, ProfileMode mode, Index length, Index lanes, double kept) {
  const auto batch = static_cast<double>(lanes);
  switch (mode) {
    case ProfileMode::decode:
      return {model.forward_flops(length + 1), weight_bytes(model, true) / batch + state_traffic(model, length)};
    case ProfileMode::prefill: {
      const auto chunk = static_cast<double>(std::min(length, prompt_chunk(lanes)));
      return {mean_forward_flops(model, length) - head_flops(model),
              weight_bytes(model, false) / (batch * chunk) + state_traffic(model, length) / chunk};
    }
    case ProfileMode::train: {
      double parameters = 0;
      for (const auto& entry : model.parameters().trainable())
        parameters += static_cast<double>(entry.parameter->shape().count()) * sizeof(float);
      return {3 * mean_forward_flops(model, length),
              (kParameterPasses * parameters + 2 * kept) / (batch * static_cast<double>(length))};
    }
  }
  return {};
}

}  // namespace quipu::inline QUIPU_REAL_NS
