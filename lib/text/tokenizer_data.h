#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace quipu {

/// Everything that is needed to rebuild a tokenizer, as datasets and checkpoints embed it: its kind, and byte strings
/// with names (unique, [a-z_]+). Numbers in them are little-endian, so that equal tokenizers are equal everywhere.
struct TokenizerData {
  struct Blob {
    std::string name;
    std::string bytes;
    bool operator==(const Blob&) const = default;
  };
  std::string kind;
  std::vector<Blob> blobs;

  bool operator==(const TokenizerData&) const = default;

  /// A 64-bit fingerprint over kind, names and bytes: tells vocabularies apart (it is no protection against forgery).
  std::uint64_t digest() const;
};

}  // namespace quipu
