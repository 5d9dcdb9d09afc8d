// RWKV-4's time mixing and the channel mixing of all versions, and what they start from.
#include "mixers/golden_layer.h"

using namespace quipu;

namespace {

/// A mixer built for the layer of a case and initialised, its parameters by name against the case's `init`.
void check_start(const GoldenCase& golden, const std::string& mixer) {
  INFO(golden.name());
  SharedParameters shared;
  Options options;
  const Site site{static_cast<Index>(golden.number("layer_id")), static_cast<Index>(golden.number("n_layer"))};
  const auto made = find_mixer(mixer, mixer == "rwkv_channel")
                        .make({static_cast<Index>(golden.number("d_model")), 0, 64, site, options, shared});
  Parameters parameters([&](const ParameterVisitor& visitor) { made->visit(visitor); }, false);
  parameters.initialise(1);
  for (const std::string& name : golden.tensors("init")) {
    CAPTURE(name);
    bool found = false;
    for (const auto& entry : parameters.trainable()) {
      if (entry.name != name) continue;
      found = true;
      CHECK(relative_error(entry.parameter->value().span(), golden.tensor("init/" + name).values) < 1e-6);
      CHECK_FALSE(entry.parameter->traits().decay);
    }
    CHECK(found);
  }
}

}  // namespace

TEST_CASE("golden: RWKV-4's time mixing") {
  for (const char* name : {"time_mix_T17", "time_mix_T64", "time_mix_state"}) check_layer("rwkv4", name, "rwkv4");
}

TEST_CASE("golden: channel mixing of RWKV-4, 6 and 7") {
  check_layer("rwkv4", "channel_mix_T17", "rwkv_channel");
  check_layer("rwkv6", "channel_mix", "rwkv_channel", {.options = {{"version", "6"}}});
  check_layer("rwkv7", "channel_mix", "rwkv_channel", {.options = {{"version", "7"}}});
}

TEST_CASE("RWKV-4 starts as published") {
  const GoldenFile file("rwkv4");
  for (const char* name : {"time_mix_T17", "time_mix_T64"}) check_start(file.at(name), "rwkv4");
  check_start(file.at("channel_mix_T17"), "rwkv_channel");
}
