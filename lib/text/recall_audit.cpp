#include "text/recall_audit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace quipu {
namespace {

bool before(const Digest& a, const Digest& b) { return a.high != b.high ? a.high < b.high : a.low < b.low; }

}  // namespace

std::string RecallFindings::text() const {
  return fmt::format("overlap {}, re-binding {}, wrong answers {}", overlap, faults.rebindings, faults.wrong);
}

void RecallAudit::add(const std::string& split, std::span<const std::int32_t> inputs,
                      std::span<const std::int32_t> targets) {
  const auto length = static_cast<std::size_t>(task_.length());
  if (inputs.size() != targets.size() || inputs.size() % length != 0)
    throw ShapeError("audit: {} inputs and {} targets are no examples of length {}", inputs.size(), targets.size(),
                     length);
  const std::size_t count = inputs.size() / length;
  auto at = std::ranges::find(splits_, split, [](const auto& s) { return s.first; });
  if (at == splits_.end()) at = splits_.insert(splits_.end(), {split, {}});
  std::vector<Digest>& digests = at->second;
  const std::size_t first = digests.size();
  digests.resize(first + count);
  std::vector<TaskFaults> faults(count);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = inputs.subspan(i * length, length);
    digests[first + i] = digest_of(std::as_bytes(row));
    faults[i] = task_.check(row, targets.subspan(i * length, length));
  }
  for (const TaskFaults& fault : faults) {
    findings_.faults.rebindings += fault.rebindings;
    findings_.faults.wrong += fault.wrong;
    findings_.bad_examples += fault.rebindings + fault.wrong > 0 ? 1 : 0;
  }
  findings_.examples += static_cast<Index>(count);
}

RecallFindings RecallAudit::finish() {
  std::vector<Digest> earlier;
  for (auto& [name, digests] : splits_) {
    std::ranges::sort(digests, before);
    for (const Digest& digest : digests)
      findings_.overlap += std::ranges::binary_search(earlier, digest, before) ? 1 : 0;
    std::vector<Digest> own;
    std::ranges::unique_copy(digests, std::back_inserter(own));
    findings_.distinct.emplace_back(name, static_cast<Index>(own.size()));
    std::vector<Digest> all;
    std::ranges::merge(earlier, own, std::back_inserter(all), before);
    earlier = std::move(all);
  }
  return findings_;
}

}  // namespace quipu
