#pragma once
#include <cstring>
#include <string_view>

#include "base/mapped_file.h"
#include "text/escape.h"

namespace quipu {

/// A name out of a foreign file as messages show it: on one line, and not longer than reads well.
inline std::string shown_name(std::string_view name) {
  constexpr std::size_t kMost = 100;
  return name.size() <= kMost ? escape_text(name) : escape_text(name.substr(0, kMost)) + "...";
}

/// Reads the bytes of a foreign file in order. What would lie beyond the end is an InputError with both numbers.
class ByteCursor {
 public:
  explicit ByteCursor(const MappedFile& file, std::uint64_t position = 0)
      : name_(file.name()), bytes_(file.bytes()), position_(position) {}
  ByteCursor(const std::string& name, std::span<const std::byte> bytes) : name_(name), bytes_(bytes) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return bytes_.size() - position_; }

  /// The next `count` bytes; `what` says in the message what they were meant to be ("a tensor's name").
  std::span<const std::byte> take(std::uint64_t count, const char* what) {
    if (count > left()) {
      throw InputError("{}: is cut off or damaged: {} needs {} bytes at byte {}, and there are {}; get the file again",
                       name_, what, count, position_, left());
    }
    position_ += count;
    return bytes_.subspan(position_ - count, count);
  }

  std::string_view text(std::uint64_t count, const char* what) {
    const auto bytes = take(count, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// What was read since `start`.
  std::string_view behind(std::uint64_t start) const {
    const auto bytes = bytes_.subspan(start, position_ - start);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// A number, little-endian.
  template <typename T>
  T number(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

 private:
  const std::string& name_;
  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
};

}  // namespace quipu
