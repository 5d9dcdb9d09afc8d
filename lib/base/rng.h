#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace quipu {

/// Counter-based random numbers: a value is a pure function of (seed, step, site, index). No generator state is
/// stored anywhere, so reruns are identical and a resumed run continues as if it had never stopped.
/// `site` tells apart the users of randomness (a layer's dropout, the data order, sampling); see `rng_site`.
/// The mixing function is SplitMix64's finaliser (Steele, Lea, Flood 2014), applied over the four words in turn.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// A stream of independent 64-bit values, addressed by index.
class Rng {
  __extension__ using Wide = unsigned __int128;

 public:
  constexpr Rng(std::uint64_t seed, std::uint64_t step, std::uint64_t site)
      : key_(mix64(mix64(mix64(seed) ^ step) ^ mix64(site))) {}

  constexpr std::uint64_t bits(std::uint64_t index) const { return mix64(key_ ^ mix64(index)); }

  /// Uniform in [0, 1), with 53 bits.
  constexpr double uniform(std::uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }

  /// Uniform in 0 .. n-1 (n >= 1), by multiplication: the bias is below n / 2^64.
  std::uint64_t below(std::uint64_t index, std::uint64_t n) const {
    return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * n) >> 64);
  }

  /// Standard normal (Box-Muller; two uniforms an index).
  double normal(std::uint64_t index) const {
    const double u = 1.0 - uniform(2 * index);
    const double angle = 2.0 * std::numbers::pi * uniform(2 * index + 1);
    return std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
  }

 private:
  std::uint64_t key_;
};

/// The site of a name, such as "layers.3.mixer.dropout" (FNV-1a).
constexpr std::uint64_t rng_site(const char* name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace quipu
