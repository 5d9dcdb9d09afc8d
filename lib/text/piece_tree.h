#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/key_table.h"

namespace quipu {

/// Byte strings as a tree over their bytes; edges are in a hash table. Built once and then only searched.
class PieceTree {
 public:
  static constexpr std::int32_t kAbsent = -1;
  static constexpr std::int32_t kRoot = 0;

  PieceTree() = default;
  /// Room for strings of `bytes` bytes in all.
  explicit PieceTree(std::size_t bytes) : edges_(bytes) {}
  /// Each piece under its position.
  explicit PieceTree(std::span<const std::string> pieces) {
    std::size_t bytes = 0;
    for (const std::string& piece : pieces) bytes += piece.size();
    edges_ = KeyTable(bytes);
    for (std::size_t id = 0; id < pieces.size(); ++id) insert(pieces[id], static_cast<std::int32_t>(id));
  }

  /// Puts `piece` (not empty, and within the room) in the tree. False where it is there already.
  bool insert(std::string_view piece, std::int32_t id) {
    std::int32_t node = kRoot;
    for (const char c : piece) {
      std::int32_t next = edges_.find(edge(node, c));
      if (next == KeyTable::kAbsent) {
        next = static_cast<std::int32_t>(pieces_.size());
        edges_.insert(edge(node, c), next);
        pieces_.push_back(kAbsent);
      }
      node = next;
    }
    std::int32_t& here = pieces_[static_cast<std::size_t>(node)];
    if (here != kAbsent) return false;
    here = id;
    return true;
  }

  /// The node below `node`, or kAbsent; and the piece that ends in a node, or kAbsent.
  std::int32_t child(std::int32_t node, char c) const { return edges_.find(edge(node, c)); }
  std::int32_t piece(std::int32_t node) const { return pieces_[static_cast<std::size_t>(node)]; }

  /// The piece that equals `text`, or kAbsent.
  std::int32_t find(std::string_view text) const {
    std::int32_t node = kRoot;
    for (const char c : text) {
      node = child(node, c);
      if (node == kAbsent) return kAbsent;
    }
    return piece(node);
  }

  /// Calls found(length, id) for every piece at the beginning of `text`, shortest first.
  template <typename Found>
  void beginnings(std::string_view text, Found&& found) const {
    longest_path(text, found);
  }

  /// The same; returns whether the end of `text` was reached where a longer piece could go on.
  template <typename Found>
  bool longest_path(std::string_view text, Found&& found) const {
    std::int32_t node = kRoot;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, text[i]);
      if (node == kAbsent) return false;
      if (const std::int32_t id = piece(node); id != kAbsent) found(i + 1, id);
    }
    return true;
  }

 private:
  static std::uint64_t edge(std::int32_t node, char c) {
    return static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(c);
  }

  KeyTable edges_;
  std::vector<std::int32_t> pieces_{kAbsent};
};

}  // namespace quipu
