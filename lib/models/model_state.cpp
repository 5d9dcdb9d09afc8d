#include <algorithm>
#include <utility>

#include "models/sequence_model.h"

namespace quipu::inline QUIPU_REAL_NS {

ModelState ModelState::detached() const {
  ModelState copy{{}, position};
  for (const State& state : layers) copy.layers.push_back(state.detached());
  return copy;
}

ModelState ModelState::gather(std::span<const Index> lanes) const {
  ModelState picked;
  for (const State& state : layers) picked.layers.push_back(state.gather(lanes));
  for (const Index lane : lanes) picked.position.push_back(position[static_cast<std::size_t>(lane)]);
  return picked;
}

void ModelState::take(ModelState other) {
  if (layers.size() != other.layers.size()) layers = std::exchange(other.layers, {});
  for (std::size_t layer = 0; layer < other.layers.size(); ++layer) {
    State &mine = layers[layer], &theirs = other.layers[layer];
    for (std::size_t i = 0; i < mine.leaves().size(); ++i) {
      StateLeaf &to = mine.leaves()[i], &from = theirs.leaves()[i];
      if (to.is_integer()) {
        to.integers = std::move(from.integers);
      } else if (to.value.shape() == from.value.shape()) {
        std::ranges::copy(from.value.value().span(), mine.writable(i).span().begin());
      } else {
        to.value = std::move(from.value);
      }
    }
  }
  position = std::move(other.position);
}

Index ModelState::bytes() const {
  Index bytes = static_cast<Index>(position.size() * sizeof(std::int64_t));
  for (const State& state : layers) bytes += state.bytes();
  return bytes;
}

}  // namespace quipu::inline QUIPU_REAL_NS
