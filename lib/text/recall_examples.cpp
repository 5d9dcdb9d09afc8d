#include "text/recall_examples.h"

#include <atomic>

#include "base/digest.h"
#include "base/error.h"

namespace quipu {
namespace {

constexpr int kMostDraws = 1000;

}  // namespace

const std::string& split_of(const Digest& identity) {
  const std::uint64_t eighth = mix64(identity.low) % 8;
  return kTaskSplits[eighth == 0 ? 2 : eighth == 1 ? 1 : 0];
}

void draw_examples(const RecallTask& task, std::uint64_t seed, const std::string& split, Index first,
                   std::span<std::int32_t> inputs, std::span<std::int32_t> targets) {
  const auto length = static_cast<std::size_t>(task.length());
  const std::uint64_t site = rng_site(("recall " + split).c_str());
  const Index count = static_cast<Index>(inputs.size() / length);
  std::atomic<bool> found_all = true;
#pragma omp parallel for schedule(static)
  for (Index i = 0; i < count; ++i) {
    Draw draw(seed, static_cast<std::uint64_t>(first + i), site);
    const auto row = inputs.subspan(static_cast<std::size_t>(i) * length, length);
    const auto target = targets.subspan(static_cast<std::size_t>(i) * length, length);
    int draws = 0;
    while (draws < kMostDraws && split_of(task.draw_identified(draw, row, target)) != split) ++draws;
    if (draws == kMostDraws) found_all = false;
  }
  if (!found_all)
    throw UsageError(
        "split '{}': an example is not found in {} draws: there are too few different ones to part them into splits; "
        "make the examples longer, or of more symbols",
        split, kMostDraws);
}

}  // namespace quipu
