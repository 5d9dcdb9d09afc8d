#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compare.h"
#include "golden.h"
#include "grad/ops_pointwise.h"
#include "models/language_model.h"
#include "train/bptt.h"

// Whole models of the published implementations that read in segments: losses, final memories and all gradients.
namespace quipu::inline QUIPU_REAL_NS {

/// Part `part` of `parts` of a published array.
struct PublishedPart {
  std::string path;
  Index part = 0, parts = 1;
};

/// A published model beside ours: `name_of` says what it calls a parameter.
class SegmentGolden {
 public:
  using NameOf = std::function<PublishedPart(const std::string& name)>;

  SegmentGolden(const GoldenCase& golden, const ModelConfig& config, NameOf name_of)
      : golden_(golden), model_(config, true), name_of_(std::move(name_of)) {
    for (const auto& entry : model_.parameters().trainable()) {
      const std::vector<double> values = published("param/", entry.name);
      std::transform(values.begin(), values.begin() + std::min<Index>(entry.end - entry.begin, std::ssize(values)),
                     entry.parameter->value().data(), [](double x) { return static_cast<Real>(x); });
    }
    model_.parameters().zero_gradients();
  }

  LanguageModel& model() { return model_; }

  /// Token ids [B,T+1] as windows of `length`, the last one shorter: inputs of columns [0,T).
  std::vector<std::int32_t> columns(Index from, Index to) const {
    const GoldenTensor tokens = golden_.tensor("tokens");
    std::vector<std::int32_t> out;
    for (Index b = 0; b < tokens.shape[0]; ++b)
      for (Index t = from; t < to; ++t)
        out.push_back(static_cast<std::int32_t>(tokens.values[static_cast<std::size_t>(b * tokens.shape[1] + t)]));
    return out;
  }

  /// Every gradient against the published ones.
  void check_gradients() {
    for (const auto& entry : model_.parameters().trainable()) {
      CAPTURE(entry.name);
      const auto flat = model_.parameters().gradients().subspan(static_cast<std::size_t>(entry.begin),
                                                                static_cast<std::size_t>(entry.end - entry.begin));
      std::vector<double> theirs = published("grad/param/", entry.name);
      theirs.resize(flat.size());  // positions that ours does not have get no gradient there
      CHECK(relative_error(flat, theirs, largest_element(golden_.tensor("grad/param/" + name_of_(entry.name).path))) <
            kGradientTolerance);
    }
  }

 private:
  std::vector<double> published(const std::string& group, const std::string& name) const {
    const auto [path, part, parts] = name_of_(name);
    const std::vector<double> values = golden_.tensor(group + path).values;
    const auto size = static_cast<std::ptrdiff_t>(values.size()) / parts;
    return {values.begin() + part * size, values.begin() + (part + 1) * size};
  }

  GoldenCase golden_;
  LanguageModel model_;
  NameOf name_of_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
