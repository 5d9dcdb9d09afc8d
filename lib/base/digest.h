#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace quipu {

/// A 128-bit fingerprint of bytes: tells damage and mix-ups apart from the original (it is no defence against forgery).
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool operator==(const Digest&) const = default;

  /// 32 hexadecimal digits.
  std::string hex() const;

  /// The inverse of `hex`; nothing where the text is not 32 hexadecimal digits.
  static std::optional<Digest> parse(std::string_view text);
};

/// Computes a digest piece by piece; the result does not depend on how the bytes are cut into pieces.
///
/// Four 64-bit lanes take one little-endian word each from every 32 bytes:  lane = rotl(lane ^ (word * odd), 29) *
/// odd'. The step is a bijection of the word for a given lane and of the lane for a given word, so a change within one
/// word is never lost, and other changes are lost with a probability of about 2^-128. The tail is padded with zeros;
/// the length and the lanes are then folded into two words with `mix64`. Several GB/s a core.
class Digester {
 public:
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  void update(std::uint64_t number) { update(std::as_bytes(std::span(&number, 1))); }
  void update(const Digest& digest);

  /// The digest of all bytes so far; more may follow.
  Digest finish() const;

 private:
  static constexpr std::size_t kStripe = 32;
  using Lanes = std::array<std::uint64_t, 4>;
  static void absorb(Lanes& lanes, const std::byte* bytes, std::size_t stripes);

  Lanes lanes_ = {0x243f6a8885a308d3ULL, 0x13198a2e03707344ULL, 0xa4093822299f31d0ULL, 0x082efa98ec4e6c89ULL};
  std::array<std::byte, kStripe> tail_{};
  std::uint64_t length_ = 0;
};

Digest digest_of(std::span<const std::byte> bytes);

}  // namespace quipu
