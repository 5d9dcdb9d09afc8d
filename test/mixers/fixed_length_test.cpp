// Mixers of a fixed length say so when a stream is longer, in parallel and token by token, and not before.
#include <doctest/doctest.h>

#include "mixers/instance.h"

using namespace quipu;

namespace {

template <typename F>
std::string error_of(const F& run) {
  try {
    run();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("fixed length: a longer stream is an error that names both lengths, however it is read") {
  for (const MixerVariant& variant : mixer_variants()) {
    const Index length = 16;
    INFO(describe(variant));
    const MixerInstance m(variant, length);
    if (m.mixer->memory() != Memory::fixed_length) continue;
    State state = m.mixer->initial_state(2), pieces = state, steps = state;
    CHECK(error_of([&] { m.forward(random_tensor({2, length, m.dim}, 1), state); }).empty());
    m.forward(random_tensor({2, length - 3, m.dim}, 1), pieces);
    const std::string whole = error_of([&] { m.forward(random_tensor({2, 1, m.dim}, 1), state); });
    const std::string piece = error_of([&] { m.forward(random_tensor({2, 5, m.dim}, 1), pieces); });
    const std::string token = error_of([&] { m.steps(random_tensor({2, length + 1, m.dim}, 1), steps); });
    for (const std::string& text : {whole, token}) CHECK(text.find("17 ") != std::string::npos);
    CHECK(piece.find("18 ") != std::string::npos);
    for (const std::string& text : {whole, piece, token}) CHECK(text.find(" 16") != std::string::npos);

    // A new document has the whole length again.
    State fresh = m.mixer->initial_state(1);
    m.forward(random_tensor({1, length, m.dim}, 1), fresh);
    CHECK(error_of([&] { m.forward(random_tensor({1, length, m.dim}, 1), Layout::fresh(1, length), fresh); }).empty());
  }
}
