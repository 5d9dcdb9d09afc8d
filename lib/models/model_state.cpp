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

Index ModelState::bytes() const {
  Index bytes = static_cast<Index>(position.size() * sizeof(std::int64_t));
  for (const State& state : layers) bytes += state.bytes();
  return bytes;
}

}  // namespace quipu::inline QUIPU_REAL_NS
