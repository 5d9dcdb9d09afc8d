#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/key_table.h"

namespace quipu {

/// Byte-pair encoding by an explicit list of merges: starting from bytes, the two neighbours whose merge stands first
/// in the list are joined, the leftmost ones first, until none can be. Words may have any length: the time is that of
/// sorting their bytes. Const and safe to use from several threads.
class MergeSegmenter {
 public:
  struct Merge {
    std::int32_t left, right, joined;  ///< ids
    bool operator==(const Merge&) const = default;
  };

  /// InputError where a pair is listed twice.
  MergeSegmenter(const std::array<std::int32_t, 256>& bytes, std::vector<Merge> merges);

  const std::vector<Merge>& merges() const { return merges_; }

  void segment(std::string_view word, std::vector<std::int32_t>& tokens) const;

 private:
  static constexpr std::size_t kShortBytes = 64;

  std::int32_t rank(std::int32_t left, std::int32_t right) const;
  void segment_short(std::string_view word, std::vector<std::int32_t>& tokens) const;
  void segment_long(std::string_view word, std::vector<std::int32_t>& tokens) const;

  std::array<std::int32_t, 256> bytes_;
  std::vector<Merge> merges_;
  KeyTable ranks_;
};

}  // namespace quipu
