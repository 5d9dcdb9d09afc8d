#pragma once
#include <bitset>
#include <string_view>

namespace quipu {

/// A set of pairs of neighbouring bytes. Of the pairs inside the pieces of a vocabulary it tells where text may be cut:
/// no piece reaches over two bytes that stand side by side in none.
class BytePairs {
 public:
  void insert(char left, char right) { pairs_.set(index(left, right)); }
  bool contains(char left, char right) const { return pairs_.test(index(left, right)); }

  /// All neighbours in `piece`.
  void insert_all(std::string_view piece) {
    for (std::size_t i = 1; i < piece.size(); ++i) insert(piece[i - 1], piece[i]);
  }

 private:
  static std::size_t index(char left, char right) {
    return static_cast<std::size_t>(static_cast<unsigned char>(left)) << 8 | static_cast<unsigned char>(right);
  }

  std::bitset<65536> pairs_;
};

}  // namespace quipu
