#include "train/generator.h"

#include <doctest/doctest.h>

#include <set>

#include "compare.h"
#include "mixers/registry.h"
#include "train/small_model.h"

using namespace quipu;

namespace {

constexpr Index kVocab = 41;

std::vector<std::int32_t> random_tokens(std::size_t count, std::uint64_t seed) {
  const Rng rng(seed, 0, rng_site("tokens"));
  std::vector<std::int32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::int32_t>(rng.below(i, kVocab));
  return tokens;
}

/// The largest relative error over the leaves of two states; infinite where integers or lengths differ.
double state_error(const ModelState& a, const ModelState& b) {
  if (a.position != b.position) return INFINITY;
  double worst = 0;
  for (std::size_t layer = 0; layer < a.layers.size(); ++layer)
    for (std::size_t i = 0; i < a.layers[layer].leaves().size(); ++i) {
      const StateLeaf &x = a.layers[layer].leaves()[i], &y = b.layers[layer].leaves()[i];
      if (x.integers != y.integers) return INFINITY;
      if (!x.is_integer()) worst = std::max(worst, relative_error(x.value.value(), y.value.value()));
    }
  return worst;
}

std::vector<std::int32_t> draw(Generator& generator, int count) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(generator.next());
  return tokens;
}

const SamplingOptions kWarm{.temperature = 0.9, .top_p = 0.95, .repetition_penalty = 1.1, .seed = 5};

}  // namespace

TEST_CASE("generator: reading in chunks is reading at once is stepping, for every mixer") {
  const auto tokens = random_tokens(150, 2);
  for (const MixerEntry& entry : registry()) {
    if (entry.channel) continue;
    CAPTURE(entry.name);
    const auto model = small_model(entry.name, kVocab);
    Generator whole(*model, {}, 1000);
    whole.read(tokens);
    const StreamState wanted = whole.state();
    CHECK(wanted.waiting == std::vector<std::int32_t>{tokens.back()});
    CHECK(wanted.tokens == 150);

    ModelState stepped = model->initial_state(1);
    Scratch scratch;
    Tensor logits({1, kVocab});
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      model->step(std::span(tokens).subspan(i, 1), stepped, scratch, logits.matrix());
    CHECK(state_error(stepped, wanted.memory) < 20 * kOutputTolerance);

    const auto text = draw(whole, 30);
    for (const Index chunk : {5, 64, 149, 150}) {
      CAPTURE(chunk);
      Generator pieces(*model, {}, chunk);
      for (std::size_t at = 0; at < tokens.size(); at += 11)
        pieces.read(std::span(tokens).subspan(at, std::min<std::size_t>(11, tokens.size() - at)));
      const StreamState got = pieces.state();
      CHECK(got.waiting == wanted.waiting);
      CHECK(state_error(got.memory, wanted.memory) < 20 * kOutputTolerance);
      CHECK(draw(pieces, 30) == text);
    }
  }
}

TEST_CASE("generator: how a piece is handed over does not change a bit") {
  const auto tokens = random_tokens(70, 3);
  const auto model = small_model("gsa", kVocab);
  Generator whole(*model, {}, 16), pieces(*model, {}, 16);
  whole.read(tokens);
  for (const std::int32_t token : tokens) pieces.read({&token, 1});
  CHECK(state_error(whole.state().memory, pieces.state().memory) == 0);
}

TEST_CASE("generator: going on from a state is what one stream would have done, to the bit") {
  const auto first = random_tokens(37, 4), second = random_tokens(21, 5);
  for (const MixerEntry& entry : registry()) {
    if (entry.channel) continue;
    CAPTURE(entry.name);
    const auto model = small_model(entry.name, kVocab);
    Generator one(*model, kWarm, 16);
    one.read(first);
    const StreamState before = one.state();
    const auto a = draw(one, 25);
    const StreamState between = one.state();
    one.read(second);
    one.end_piece();
    const auto b = draw(one, 25);
    const StreamState after = one.state();
    CHECK(after.tokens == 37 + 25 + 21 + 25);

    Generator other(*model, kWarm, 16);
    other.resume(before);
    CHECK(draw(other, 25) == a);
    Generator third(*model, kWarm, 16);
    third.resume(between);
    third.read(second);
    CHECK(draw(third, 25) == b);
    CHECK(state_error(third.state().memory, after.memory) == 0);
    CHECK(third.state().recent == after.recent);
    // The copies were not written into by those who went on from them.
    CHECK(before.memory.position[0] == 36);
    Generator again(*model, kWarm, 16);
    again.resume(before);
    CHECK(draw(again, 25) == a);
  }
}

TEST_CASE("generator: seeds are reproducible, and the text depends on what was read") {
  const auto model = small_model("gsa", kVocab);
  const auto text_of_seed = [&](std::uint64_t seed, const std::vector<std::int32_t>& prompt) {
    SamplingOptions options = kWarm;
    options.seed = seed;
    Generator generator(*model, options);
    generator.read(prompt);
    return draw(generator, 40);
  };
  const auto prompt = random_tokens(20, 6);
  CHECK(text_of_seed(1, prompt) == text_of_seed(1, prompt));
  CHECK(text_of_seed(1, prompt) != text_of_seed(2, prompt));
  CHECK(text_of_seed(1, prompt) != text_of_seed(1, random_tokens(20, 7)));
}

TEST_CASE("generator: needs a first token, and knows its state's size") {
  const auto model = small_model("gsa", kVocab);
  Generator generator(*model, {});
  CHECK(generator.last_token() == -1);
  CHECK_THROWS_AS(generator.next(), InternalError);
  const Index bytes = generator.state_bytes();
  generator.read(random_tokens(600, 8));
  draw(generator, 5);
  CHECK(generator.state_bytes() == bytes);
  CHECK(bytes == model->state_bytes(605));
  CHECK(generator.tokens() == 605);
}

TEST_CASE("generator: a weight that is not finite is a numeric error") {
  const auto model = small_model("linear_attention", kVocab);
  model->parameters().values()[3] = std::numeric_limits<Real>::quiet_NaN();
  Generator generator(*model, {});
  generator.read(std::vector<std::int32_t>{0, 1, 2});
  CHECK_THROWS_AS(generator.next(), NumericError);
}

TEST_CASE("generator: rows that the tokenizer has no token for are never drawn") {
  const auto model = small_model("gsa", kVocab);
  const auto prompt = random_tokens(9, 3);
  SamplingOptions hot = kWarm;
  hot.temperature = 50, hot.top_p = 1;
  const auto highest = [&](Index tokens) {
    Generator generator(*model, hot, Generator::kChunk, tokens);
    generator.read(prompt);
    const std::vector<std::int32_t> drawn = draw(generator, 200);
    return *std::max_element(drawn.begin(), drawn.end());
  };
  CHECK(highest(0) >= 30);
  CHECK(highest(30) < 30);
}
