// Long and extreme inputs in float against the same in double. The double build writes what each mixer gives into the
// folder QUIPU_STREAMS, the float build compares: see test/slow/long_stream_test.sh. Without the folder, outputs need
// only be finite.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "mixers/instance.h"

using namespace quipu;

namespace {

constexpr Index kTail = 64;      ///< tokens at the end that are compared
constexpr Index kPiece = 4096;   ///< tokens read at once
constexpr double kClose = 1e-3;  ///< of float to double, relative to the largest element
constexpr Index kStream = 100000;

/// A kind of input: its length, and the element at (token, channel).
struct Stream {
  const char* name;
  Index length;
  double (*at)(const Rng& rng, Index token, Index channel);
};

double normal_at(const Rng& rng, Index token, Index channel) {
  return rng.normal(static_cast<std::uint64_t>(token * 64 + channel));
}

const Stream kStreams[]{
    {"long", kStream, normal_at},
    {"large", 300, [](const Rng& rng, Index t, Index c) { return 204 * normal_at(rng, t, c); }},  // norm 1000
    {"equal", 3000, [](const Rng& rng, Index, Index c) { return normal_at(rng, 0, c); }},
    {"tiny", 300, [](const Rng& rng, Index t, Index c) { return 1e-3 * normal_at(rng, t, c); }},
};

/// The outputs of the last tokens of one stream.
std::vector<double> read_stream(const MixerInstance& m, const Stream& stream) {
  const Rng rng(5, 0, 7);
  State state = m.mixer->initial_state(1);
  std::vector<double> tail;
  for (Index begin = 0; begin < stream.length; begin += kPiece) {
    const Index end = std::min(stream.length, begin + kPiece);
    Tensor x({1, end - begin, m.dim});
    for (Index t = begin; t < end; ++t)
      for (Index c = 0; c < m.dim; ++c) x.data()[(t - begin) * m.dim + c] = static_cast<Real>(stream.at(rng, t, c));
    const Tensor y = m.forward(x, state);
    for (Index t = std::max(begin, stream.length - kTail); t < end; ++t)
      for (Index c = 0; c < m.dim; ++c) tail.push_back(static_cast<double>(y.data()[(t - begin) * m.dim + c]));
  }
  return tail;
}

/// Writes (double) or compares (float).
void check_against_double(const std::vector<double>& tail, const std::string& file) {
  for (const double value : tail) REQUIRE(std::isfinite(value));
  const char* const folder = std::getenv("QUIPU_STREAMS");
  if (folder == nullptr) return;
  const std::string path = std::string(folder) + "/" + file;
  const auto bytes = static_cast<std::streamsize>(tail.size() * sizeof(double));
  if (kIsDouble) {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(tail.data()), bytes);
    return;
  }
  std::vector<double> wanted(tail.size());
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(wanted.data()), bytes);
  const double error = relative_error(tail, wanted);
  MESSAGE(file << ": " << error);
  CHECK(error < kClose);
}

}  // namespace

TEST_CASE("streams: 100,000 tokens, large, equal and tiny inputs, in float as in double" * doctest::skip()) {
  int number = 0;
  for (const MixerVariant& variant : mixer_variants()) {
    ++number;
    const MixerInstance m(variant);
    if (m.mixer->memory() != Memory::fixed) continue;  // a length of its own, or a time that grows
    INFO(describe(variant));
    for (const Stream& stream : kStreams)
      check_against_double(read_stream(m, stream), variant.name + "_" + std::to_string(number) + "_" + stream.name);
  }
}
