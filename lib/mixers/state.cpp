#include "mixers/state.h"

#include <algorithm>

#include "base/error.h"

namespace quipu::inline QUIPU_REAL_NS {

Shape with_lanes(Shape shape, Index lanes) {
  shape[0] = lanes;
  return shape;
}

void State::add_real(std::string name, std::string axes, Tensor value) {
  if (std::ranges::count(axes, ' ') + 2 != value.shape().rank())
    throw InternalError("state: {} of {} axes has the letters {}", name, value.shape().rank() - 1, axes);
  leaves_.push_back({std::move(name), std::move(axes), Var(std::move(value)), {}});
}

Index State::lanes() const {
  if (leaves_.empty()) return 0;
  const StateLeaf& leaf = leaves_.front();
  return leaf.is_integer() ? static_cast<Index>(leaf.integers.size()) : leaf.value.extent(0);
}

State State::detached() const {
  State copy = *this;
  for (StateLeaf& leaf : copy.leaves_) leaf.value = leaf.value.detached();
  return copy;
}

State State::gather(std::span<const Index> lanes) const {
  State picked;
  for (const StateLeaf& leaf : leaves_) {
    StateLeaf copy{leaf.name, leaf.axes, {}, {}};
    if (leaf.is_integer()) {
      for (const Index lane : lanes) copy.integers.push_back(leaf.integers[static_cast<std::size_t>(lane)]);
    } else {
      Tensor value(with_lanes(leaf.value.shape(), static_cast<Index>(lanes.size())));
      const Index size = leaf.value.value().count() / std::max<Index>(1, leaf.value.extent(0));
      for (std::size_t i = 0; i < lanes.size(); ++i)
        std::copy_n(leaf.value.value().data() + lanes[i] * size, size, value.data() + static_cast<Index>(i) * size);
      copy.value = Var(std::move(value));
    }
    picked.leaves_.push_back(std::move(copy));
  }
  return picked;
}

void State::set_lane(Index lane, const State& source) {
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    if (leaves_[i].is_integer()) {
      leaves_[i].integers[static_cast<std::size_t>(lane)] = source.leaves_[i].integers[0];
      continue;
    }
    const Tensor& from = source.leaves_[i].value.value();
    require_shape("state: a lane", with_lanes(leaves_[i].value.shape(), 1), from.shape());
    std::copy_n(from.data(), from.count(), writable(i).data() + lane * from.count());
  }
}

std::string State::formula() const {
  std::vector<std::pair<std::string, int>> terms;  // a term, and how often it comes
  int counts = 0;
  for (const StateLeaf& leaf : leaves_) {
    if (leaf.is_integer()) {
      ++counts;
      continue;
    }
    const auto same = std::ranges::find(terms, leaf.axes, &std::pair<std::string, int>::first);
    if (same == terms.end())
      terms.emplace_back(leaf.axes, 1);
    else
      ++same->second;
  }
  std::vector<std::string> parts;
  for (const auto& [term, times] : terms) parts.push_back(times == 1 ? term : fmt::format("{} {}", times, term));
  if (counts > 0) parts.push_back(fmt::format("{} count{}", counts, counts == 1 ? "" : "s"));
  return parts.empty() ? "0" : fmt::format("{}", fmt::join(parts, " + "));
}

Index State::bytes() const {
  Index bytes = 0;
  for (const StateLeaf& leaf : leaves_)
    bytes += leaf.is_integer() ? static_cast<Index>(leaf.integers.size() * sizeof(std::int64_t))
                               : leaf.value.value().count() * static_cast<Index>(sizeof(float));
  return bytes;
}

}  // namespace quipu::inline QUIPU_REAL_NS
