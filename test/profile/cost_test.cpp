#include "profile/cost.h"

#include <doctest/doctest.h>

using namespace quipu;

namespace {

/// Two layers of width 8 with two heads, no channel mixers; per layer q, k, v, o [8,8].
ModelConfig small(const std::string& mixer) {
  ModelConfig config;
  config.mixer = mixer, config.channel_mixer = "none";
  config.vocab = 11, config.dim = 8, config.layers = 2, config.heads = 2, config.length = 16;
  config.norm = "rmsnorm", config.head = "untied", config.positions = "none";
  return config;
}

constexpr double kHead = 11 * 8, kNorms = 3 * 8;

}  // namespace

TEST_CASE("cost: attention, counted by hand") {
  const LanguageModel model(small("attention"), true);
  constexpr double kStack = 2 * 4 * 64;
  // Multiply-adds of position p: 2 p D a layer.
  const TokenCost decode = token_cost(model, ProfileMode::decode, 5, 3);
  CHECK(decode.flops == 2 * (kStack + kHead + 2 * (2 * 8 * 6)));
  // The cache holds 5 rows of keys and values, and a count in each layer; then the position.
  CHECK(decode.bytes == doctest::Approx((kStack + kHead + kNorms) * 4 / 3 + 2 * (2 * 5 * 8 * 4 + 8) + 8));
  const TokenCost prefill = token_cost(model, ProfileMode::prefill, 5, 3);
  CHECK(prefill.flops == 2 * (kStack + 2 * (2 * 8 * 3)));
  CHECK(prefill.bytes == doctest::Approx((kStack + kNorms) * 4 / 15 + (2.0 * (2 * 5 * 8 * 4 + 8) + 8) / 5));
  const TokenCost train = token_cost(model, ProfileMode::train, 5, 3, 1000);
  CHECK(train.flops == 3 * 2 * (kStack + kHead + 2 * (2 * 8 * 3)));
  const double parameters = kStack + 2 * kHead + kNorms;  // the embedding table too
  CHECK(train.bytes == doctest::Approx((12 * 4 * parameters + 2 * 1000) / 15));
}

TEST_CASE("cost: gated slots, counted by hand, are the same at every length") {
  ModelConfig config = small("gsa");
  config.options["slots"] = "3";
  const LanguageModel model(config, false);
  // The forget gate [2*3,8]; two passes over two memories of [3,4] in two heads; a norm of the output.
  constexpr double kStack = 2 * (4 * 64 + 48), kMixing = 2 * 2 * (2 * 2 * 3 * 4);
  for (const Index length : {1, 5, 4096}) {
    const TokenCost decode = token_cost(model, ProfileMode::decode, length, 1);
    CHECK(decode.flops == 2 * (kStack + kMixing + kHead));
    CHECK(decode.bytes == (kStack + kHead + kNorms + 2 * 8) * 4 + 2 * (2 * (2 * 2 * 3 * 4 * 4) + 8));
    CHECK(token_cost(model, ProfileMode::prefill, length, 1).flops == doctest::Approx(2 * (kStack + kMixing)));
  }
}

TEST_CASE("cost: a table over positions is not multiplied with") {
  ModelConfig config = small("synthesizer");
  for (const Index length : {8, 800}) {
    config.length = length;
    const LanguageModel model(config, false);
    // v and o; every past value once, weighted.
    CHECK(token_cost(model, ProfileMode::decode, 4, 1).flops == 2 * (2 * 2 * 64 + kHead + 2 * (5 * 8)));
    CHECK(weight_bytes(model, false) < 4 * (2 * 2 * 64 + 100));
  }
}

TEST_CASE("cost: a tied head is read once, where logits are made") {
  ModelConfig config = small("attention");
  config.head = "tied";
  const LanguageModel model(config, false);
  CHECK(weight_bytes(model, true) == 4 * (512 + kHead + kNorms));
  CHECK(weight_bytes(model, false) == 4 * (512 + kNorms));
}

TEST_CASE("cost: the mean over long stretches is that over all positions") {
  const LanguageModel model(small("attention"), false);
  const double exact = 2 * (512 + 2 * 2 * 8 * (10001.0 / 2));
  CHECK(token_cost(model, ProfileMode::prefill, 10000, 1).flops == doctest::Approx(exact).epsilon(1e-4));
}
