// Synthesizers against the published form's numbers, causal.
#include "mixers/golden_layer.h"

using namespace quipu;

TEST_CASE("golden: Synthesizer, causal: random, factorized and dense") {
  const std::map<std::string, PublishedName> names{{"v_proj.weight", {"Wv"}},  {"o_proj.weight", {"Wo"}},
                                                   {"dense_1.weight", {"W1"}}, {"dense_1.bias", {"b1"}},
                                                   {"dense_2.weight", {"W2"}}, {"dense_2.bias", {"b2"}}};
  const auto check = [&](const char* name, std::map<std::string, std::string> options) {
    check_layer("synthesizer", name, "synthesizer", {.options = std::move(options), .names = names, .length = 24});
  };
  check("random_causal", {});
  check("factorized_random_causal", {{"variant", "factorized"}, {"rank", "4"}});
  check("dense_causal", {{"variant", "dense"}});
}
