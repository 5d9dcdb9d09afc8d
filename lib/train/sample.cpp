#include "train/sample.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "tensor/kernels.h"

namespace quipu {
namespace {

constexpr double kLowestTemperature = 1e-6;
constexpr std::uint64_t kSamplingSite = rng_site("sampling");
/// Up to here a heap of the best so far is faster than partitioning.
constexpr Index kSmallTop = 128;

}  // namespace

void require_valid(const SamplingOptions& o) {
  if (!(o.temperature >= 0 && std::isfinite(o.temperature)))
    throw UsageError("--temperature: {} is not a number of 0 or more", o.temperature);
  if (o.top_k < 0) throw UsageError("--top-k: {} is below 0; 0 keeps all tokens", o.top_k);
  if (!(o.top_p > 0 && o.top_p <= 1))
    throw UsageError("--top-p: {} is not above 0 and at most 1; 1 keeps all tokens", o.top_p);
  if (!(o.min_p >= 0 && o.min_p <= 1)) throw UsageError("--min-p: {} is not from 0 to 1; 0 keeps all tokens", o.min_p);
  if (!(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty)))
    throw UsageError("--repetition-penalty: {} is not above 0; 1 is none", o.repetition_penalty);
}

inline namespace QUIPU_REAL_NS {

Sampler::Sampler(const SamplingOptions& options, Index vocab) : options_(options) {
  require_valid(options);
  weights_.resize(static_cast<std::size_t>(vocab));
  if (options.top_k > 0 || options.top_p < 1) candidates_.reserve(weights_.size());
  recent_.reserve(static_cast<std::size_t>(kRepetitionWindow));
}

void Sampler::observe(std::int32_t token) {
  if (static_cast<Index>(recent_.size()) < kRepetitionWindow) return recent_.push_back(token);
  recent_[oldest_] = token;
  oldest_ = (oldest_ + 1) % recent_.size();
}

std::vector<std::int32_t> Sampler::recent() const {
  std::vector<std::int32_t> tokens(recent_.begin() + static_cast<std::ptrdiff_t>(oldest_), recent_.end());
  tokens.insert(tokens.end(), recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(oldest_));
  return tokens;
}

void Sampler::take_penalised(std::span<const Real> logits) {
  if (logits.size() != weights_.size())
    throw ShapeError("sampling: {} logits for a vocabulary of {}", logits.size(), weights_.size());
  if (!kernels::all_finite(logits.data(), static_cast<Index>(logits.size()))) {
    const auto bad = std::ranges::find_if_not(logits, [](Real x) { return std::isfinite(x); });
    throw NumericError("sampling: the logit of token {} is {}; the model's weights are damaged or diverged in training",
                       bad - logits.begin(), *bad);
  }
  std::ranges::copy(logits, weights_.begin());
  if (options_.repetition_penalty == 1) return;
  const Real penalty = static_cast<Real>(options_.repetition_penalty);
  for (const std::int32_t token : recent_) {
    if (static_cast<std::size_t>(token) >= weights_.size()) continue;  // read, but never drawn
    const Real logit = logits[static_cast<std::size_t>(token)];
    weights_[static_cast<std::size_t>(token)] = logit > 0 ? logit / penalty : logit * penalty;
  }
}

std::span<const Real> Sampler::weights(std::span<const Real> logits) {
  take_penalised(logits);
  const auto count = static_cast<Index>(weights_.size());
  const Real highest = kernels::max(weights_.data(), count);
  for (Real& w : weights_) w -= highest;
  kernels::scale(weights_.data(), static_cast<Real>(1 / std::max(options_.temperature, kLowestTemperature)),
                 weights_.data(), count);
  kernels::exp(weights_.data(), weights_.data(), count);

  Candidate last{0, static_cast<std::int32_t>(count)};  // behind all others
  const bool selects = (options_.top_k > 0 && options_.top_k < count) || options_.top_p < 1;
  if (selects) {
    candidates_.clear();
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (weights_[i] > 0) candidates_.push_back({weights_[i], static_cast<std::int32_t>(i)});
    keep_top_k();
    keep_top_p();
    for (const Candidate& candidate : candidates_)
      if (&candidate == candidates_.data() || last.stands_before(candidate)) last = candidate;
  }
  const auto lowest = static_cast<Real>(options_.min_p);
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (last.stands_before({weights_[i], static_cast<std::int32_t>(i)}) || weights_[i] < lowest) weights_[i] = 0;
  return weights_;
}

/// Leaves the first `top_k` candidates.
void Sampler::keep_top_k() {
  const Index k = options_.top_k;
  if (k == 0 || k >= static_cast<Index>(candidates_.size())) return;
  const auto before = [](const Candidate& a, const Candidate& b) { return a.stands_before(b); };
  if (k <= kSmallTop)
    std::partial_sort(candidates_.begin(), candidates_.begin() + k, candidates_.end(), before);
  else
    std::nth_element(candidates_.begin(), candidates_.begin() + k, candidates_.end(), before);
  candidates_.resize(static_cast<std::size_t>(k));
}

/// Leaves the fewest first candidates whose weights sum to at least top_p of all, without sorting: halves are set apart
/// by selection, and only the one with the border in it is looked into further.
void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  const auto weight_of = [](auto begin, auto end) {
    double sum = 0;
    for (auto c = begin; c != end; ++c) sum += static_cast<double>(c->weight);
    return sum;
  };
  const double total = weight_of(candidates_.begin(), candidates_.end()), wanted = options_.top_p * total;
  // All candidates below this weight together do not make up what may be left out; half of it for the rounding.
  const double negligible = (total - wanted) / (2 * static_cast<double>(candidates_.size()));
  std::erase_if(candidates_, [&](const Candidate& c) { return static_cast<double>(c.weight) < negligible; });

  Iterator begin = candidates_.begin(), end = candidates_.end();  // the border lies in begin + 1 .. end
  double sum = 0;                                                 // of what stands before `begin`
  while (end - begin > 1) {
    const Iterator middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, [](const Candidate& a, const Candidate& b) { return a.stands_before(b); });
    const double first_half = weight_of(begin, middle);
    if (sum + first_half >= wanted) {
      end = middle;
    } else {
      sum += first_half;
      begin = middle;
    }
  }
  candidates_.erase(end, candidates_.end());
}

std::int32_t Sampler::next(std::span<const Real> logits, std::int64_t position) {
  if (options_.temperature == 0) {
    take_penalised(logits);
    const Real highest = kernels::max(weights_.data(), static_cast<Index>(weights_.size()));
    return static_cast<std::int32_t>(std::ranges::find(weights_, highest) - weights_.begin());
  }
  weights(logits);
  double total = 0;
  for (const Real w : weights_) total += static_cast<double>(w);
  const Rng rng(options_.seed, static_cast<std::uint64_t>(position), kSamplingSite);
  const double target = rng.uniform(0) * total;
  double sum = 0;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] == 0) continue;
    chosen = i;
    sum += static_cast<double>(weights_[i]);
    if (sum > target) break;
  }
  return static_cast<std::int32_t>(chosen);
}

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
