#include <array>
#include <limits>
#include <unordered_map>

#include "text/key_table.h"
#include "text/segmenter.h"
#include "text/word_split.h"

namespace quipu {

namespace {

constexpr std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

class BpeSegmenter final : public Segmenter {
 public:
  explicit BpeSegmenter(std::span<const std::string> pieces) {
    std::unordered_map<std::string_view, std::int32_t> ids;
    ids.reserve(pieces.size());
    std::size_t pairs = 0;
    for (std::size_t id = 0; id < pieces.size(); ++id) {
      ids.emplace(pieces[id], static_cast<std::int32_t>(id));
      pairs += pieces[id].size();
    }
    joined_ = KeyTable(pairs);
    for (const std::string_view piece : pieces) {
      for (std::size_t cut = 1; cut < piece.size(); ++cut) {
        const auto left = ids.find(piece.substr(0, cut));
        const auto right = ids.find(piece.substr(cut));
        if (left == ids.end() || right == ids.end()) continue;
        joined_.insert(pair_key(left->second, right->second), ids.at(piece));
      }
    }
  }

  void segment(std::string_view word, std::vector<std::int32_t>& tokens) const override {
    std::array<std::int32_t, kMaxWordBytes> parts;
    std::array<std::int32_t, kMaxWordBytes> joins;  // what parts i and i+1 make, or kNone
    std::size_t count = word.size();
    for (std::size_t i = 0; i < count; ++i) parts[i] = static_cast<unsigned char>(word[i]);
    for (std::size_t i = 0; i + 1 < count; ++i) joins[i] = join(parts[i], parts[i + 1]);
    while (count > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < count; ++i) best = joins[i] < joins[best] ? i : best;
      if (joins[best] == kNone) break;
      parts[best] = joins[best];
      --count;
      for (std::size_t i = best + 1; i < count; ++i) parts[i] = parts[i + 1];
      for (std::size_t i = best + 1; i + 1 < count; ++i) joins[i] = joins[i + 1];
      if (best > 0) joins[best - 1] = join(parts[best - 1], parts[best]);
      if (best + 1 < count) joins[best] = join(parts[best], parts[best + 1]);
    }
    tokens.insert(tokens.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
  }

 private:
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

  std::int32_t join(std::int32_t left, std::int32_t right) const {
    const std::int32_t id = joined_.find(pair_key(left, right));
    return id == KeyTable::kAbsent ? kNone : id;
  }

  KeyTable joined_;
};

}  // namespace

std::unique_ptr<Segmenter> make_bpe_segmenter(std::span<const std::string> pieces) {
  return std::make_unique<BpeSegmenter>(pieces);
}

}  // namespace quipu
