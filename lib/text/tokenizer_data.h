#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quipu {

/// Everything needed to rebuild a tokenizer, as plain data for files: its kind (`bytes`, `words`, `bpe`, ...) and
/// named blobs whose meaning is the kind's own.
struct TokenizerData {
  std::string kind;
  std::vector<std::pair<std::string, std::vector<std::uint8_t>>> blobs;
  bool operator==(const TokenizerData&) const = default;
};

}  // namespace quipu
