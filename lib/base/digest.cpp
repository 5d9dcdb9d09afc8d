#include "base/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "base/rng.h"

namespace quipu {

static_assert(std::endian::native == std::endian::little, "files and digests are little-endian");

namespace {

constexpr std::uint64_t kOdd = 0x9fb21c651e98df25ULL;
constexpr std::uint64_t kWordOdd = 0xd6e8feb86659fd93ULL;

/// See the class: the word is multiplied first, so that none of its bits meets a single bit of the next word.
inline std::uint64_t step(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane ^ (word * kWordOdd), 29) * kOdd;
}

}  // namespace

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

std::optional<Digest> Digest::parse(std::string_view text) {
  constexpr std::size_t kHalf = 16;
  if (text.size() != 2 * kHalf) return std::nullopt;
  Digest digest;
  const char* middle = text.data() + kHalf;
  const char* end = middle + kHalf;
  const auto first = std::from_chars(text.data(), middle, digest.high, 16);
  const auto second = std::from_chars(middle, end, digest.low, 16);
  if (first.ec != std::errc() || first.ptr != middle || second.ec != std::errc() || second.ptr != end) return {};
  return digest;
}

void Digester::absorb(Lanes& lanes, const std::byte* bytes, std::size_t stripes) {
  std::uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
  for (std::size_t i = 0; i < stripes; ++i, bytes += kStripe) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), bytes, kStripe);
    a = step(a, words[0]);
    b = step(b, words[1]);
    c = step(c, words[2]);
    d = step(d, words[3]);
  }
  lanes = {a, b, c, d};
}

void Digester::update(std::span<const std::byte> bytes) {
  const std::size_t held = length_ % kStripe;
  length_ += bytes.size();
  if (held > 0) {
    const std::size_t taken = std::min(kStripe - held, bytes.size());
    std::copy_n(bytes.begin(), taken, tail_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    if (held + taken < kStripe) return;
    absorb(lanes_, tail_.data(), 1);
  }
  const std::size_t stripes = bytes.size() / kStripe;
  absorb(lanes_, bytes.data(), stripes);
  std::ranges::copy(bytes.subspan(stripes * kStripe), tail_.begin());
}

void Digester::update(const Digest& digest) {
  update(digest.high);
  update(digest.low);
}

Digest Digester::finish() const {
  Lanes lanes = lanes_;
  const std::size_t held = length_ % kStripe;
  if (held > 0) {
    std::array<std::byte, kStripe> last{};
    std::copy_n(tail_.begin(), held, last.begin());
    absorb(lanes, last.data(), 1);
  }
  Digest digest{mix64(length_), mix64(~length_)};
  for (const std::uint64_t lane : lanes) {
    digest.high = mix64(digest.high ^ lane);
    digest.low = mix64(std::rotl(digest.low, 32) ^ lane ^ kOdd);
  }
  return digest;
}

Digest digest_of(std::span<const std::byte> bytes) {
  Digester digester;
  digester.update(bytes);
  return digester.finish();
}

}  // namespace quipu
