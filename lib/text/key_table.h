#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace quipu {

/// A fixed-size hash table from 64-bit keys to non-negative ids, built once and then only searched.
class KeyTable {
 public:
  static constexpr std::int32_t kAbsent = -1;

  /// Room for `count` keys, at most half full.
  explicit KeyTable(std::size_t count = 0) : slots_(std::bit_ceil(2 * count + 2)) {}

  /// The key must not be in the table yet, and there must be room.
  void insert(std::uint64_t key, std::int32_t id) { slots_[position(key)] = {key, id}; }

  std::int32_t find(std::uint64_t key) const { return slots_[position(key)].id; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t id = kAbsent;
  };

  /// Where the key stands, or the empty slot where it would.
  std::size_t position(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = mix64(key) & mask;
    while (slots_[at].id != kAbsent && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  std::vector<Slot> slots_;
};

}  // namespace quipu
