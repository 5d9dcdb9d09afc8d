#include "train/stream_file.h"

#include <algorithm>

#include "base/error.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr const char* kPosition = "position";
constexpr const char* kWaiting = "waiting";
constexpr const char* kRecent = "recent";
constexpr const char* kOpenText = "open_text";

/// Layers come in pairs: the token mixer of a block, then its channel mixer.
std::string leaf_name(std::size_t layer, const std::string& leaf) {
  return fmt::format("layers.{}.{}.{}", layer / 2, layer % 2 == 0 ? "mixer" : "channel", leaf);
}

SavedLeaf tokens_leaf(const char* name, const std::vector<std::int32_t>& tokens) {
  return {name, {static_cast<Index>(tokens.size())}, std::vector<std::int64_t>(tokens.begin(), tokens.end())};
}

const SavedLeaf& find_leaf(const SavedState& saved, const std::string& name, const std::string& file) {
  const auto found = std::ranges::find(saved.leaves, name, &SavedLeaf::name);
  if (found == saved.leaves.end())
    throw InputError("{}: has no {}, which this model's state has; give a state that this model wrote", file, name);
  return *found;
}

template <typename T>
const std::vector<T>& numbers(const SavedLeaf& leaf, const std::string& file) {
  const auto* data = std::get_if<std::vector<T>>(&leaf.data);
  if (data == nullptr)
    throw InputError("{}: {} holds numbers of another type; give a state that this model wrote", file, leaf.name);
  return *data;
}

std::vector<std::int32_t> read_tokens(const SavedState& saved, const char* name, Index vocab, const std::string& file) {
  std::vector<std::int32_t> tokens;
  for (const std::int64_t token : numbers<std::int64_t>(find_leaf(saved, name, file), file)) {
    if (token < 0 || token >= vocab)
      throw InputError("{}: token {} in {} is outside the vocabulary (size {})", file, token, name, vocab);
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return tokens;
}

/// Shapes must agree, but for an axis that is empty before the first token: it grows (a cache).
void require_fits(const SavedLeaf& leaf, const Shape& fresh, const std::string& file) {
  bool fits = static_cast<int>(leaf.shape.size()) == fresh.rank();
  for (int axis = 0; fits && axis < fresh.rank(); ++axis)
    fits = fresh[axis] == 0 || leaf.shape[static_cast<std::size_t>(axis)] == fresh[axis];
  if (!fits)
    throw InputError("{}: {} is [{}], in this model {}; give a state that this model wrote", file, leaf.name,
                     fmt::join(leaf.shape, ", "), fresh.text());
}

void read_leaf(const SavedState& saved, const std::string& name, const std::string& file, StateLeaf& leaf) {
  const SavedLeaf& stored = find_leaf(saved, name, file);
  if (leaf.is_integer()) {
    require_fits(stored, {static_cast<Index>(leaf.integers.size())}, file);
    leaf.integers = numbers<std::int64_t>(stored, file);
    return;
  }
  require_fits(stored, leaf.value.shape(), file);
  Tensor value{Shape(std::span<const Index>(stored.shape))};
  std::ranges::copy(numbers<Real>(stored, file), value.data());
  leaf.value = Var(std::move(value));
}

}  // namespace

SavedState to_saved(const StreamState& stream, const std::string& parameter_digest, const std::string& open_text) {
  SavedState saved{
      .parameter_digest = parameter_digest, .tokens = stream.tokens, .leaves = {}, .blobs = {}, .provenance = {}};
  for (std::size_t layer = 0; layer < stream.memory.layers.size(); ++layer)
    for (const StateLeaf& leaf : stream.memory.layers[layer].leaves()) {
      const std::string name = leaf_name(layer, leaf.name);
      if (leaf.is_integer()) {
        saved.leaves.push_back({name, {static_cast<Index>(leaf.integers.size())}, leaf.integers});
        continue;
      }
      const Shape& shape = leaf.value.shape();
      const auto span = leaf.value.value().span();
      saved.leaves.push_back({name, {shape.begin(), shape.end()}, std::vector<Real>(span.begin(), span.end())});
    }
  saved.leaves.push_back({kPosition, {static_cast<Index>(stream.memory.position.size())}, stream.memory.position});
  saved.leaves.push_back(tokens_leaf(kWaiting, stream.waiting));
  saved.leaves.push_back(tokens_leaf(kRecent, stream.recent));
  if (!open_text.empty())
    saved.blobs.emplace_back(kOpenText, std::vector<std::uint8_t>(open_text.begin(), open_text.end()));
  return saved;
}

StreamState from_saved(const SavedState& saved, const SequenceModel& model, const std::string& file,
                       std::string& open_text) {
  StreamState stream{model.initial_state(1), {}, saved.tokens, {}};
  for (std::size_t layer = 0; layer < stream.memory.layers.size(); ++layer)
    for (StateLeaf& leaf : stream.memory.layers[layer].leaves())
      read_leaf(saved, leaf_name(layer, leaf.name), file, leaf);
  stream.memory.position = numbers<std::int64_t>(find_leaf(saved, kPosition, file), file);
  if (stream.memory.position.size() != 1)
    throw InputError("{}: holds {} streams; give a state of one", file, stream.memory.position.size());
  stream.waiting = read_tokens(saved, kWaiting, model.vocab(), file);
  stream.recent = read_tokens(saved, kRecent, model.vocab(), file);
  open_text.clear();
  for (const auto& [name, bytes] : saved.blobs)
    if (name == kOpenText) open_text.assign(bytes.begin(), bytes.end());
  return stream;
}

}  // namespace quipu::inline QUIPU_REAL_NS
