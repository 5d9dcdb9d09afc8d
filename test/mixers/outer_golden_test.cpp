// Layers of the published implementations whose memory is an outer-product scan.
#include <cmath>

#include "mixers/golden_layer.h"

using namespace quipu;

TEST_CASE("golden: gated linear attention") {
  for (const char* name : {"layer_T17", "layer_T64", "layer_state"})
    check_layer("gla", name, "gla", {.options = {{"conv_size", "4"}}});
  check_layer("gla", "layer_conv_T17", "gla", {.options = {{"use_short_conv", "true"}}});
}

TEST_CASE("golden: retention") {
  for (const char* name : {"fla_layer_T17", "fla_layer_state"})
    check_layer("retnet", name, "retnet", {.leaves = {{"position", {"rope_offset"}}}});
  // The published rows are scaled before their norm, which is exact but for its epsilon.
  for (const char* name : {"torchscale_T17", "torchscale_T64"})
    check_layer("retnet", name, "retnet",
                {.options = {{"variant", "torchscale"}},
                 .names = {{"o_proj.weight", {"out_proj.weight"}}},
                 .output_tolerance = 1e-3,
                 .gradient_tolerance = 1e-3});
}

TEST_CASE("golden: HGRN2") {
  // The file gives a layer its bound beta; with two layers the upper one's is the logistic of its logit.
  const MadeParameter logits = [](const GoldenCase& golden, const std::string& group) {
    const std::string at = group.substr(0, group.size() - std::string("param/").size()) + "input/lower_bound";
    const std::size_t dim = golden.tensor("input/x").shape[2];
    GoldenTensor made{{2, static_cast<Index>(dim)}, std::vector<double>(2 * dim, 0)};
    if (!golden.has("input/lower_bound")) return made;
    const GoldenTensor beta = golden.tensor("input/lower_bound"), given = golden.tensor(at);
    for (std::size_t c = 0; c < dim; ++c) {
      const double b = beta.values[c];
      made.values[dim + c] = group == "param/" ? std::log(b / (1 - b)) : given.values[c] * b * (1 - b);
      if (group != "param/") made.values[c] = -made.values[dim + c];
    }
    return made;
  };
  for (const auto& [name, layer] : {std::pair{"layer_T17", 0}, {"layer_T64_lower_bound", 1}, {"layer_state", 1}})
    check_layer("hgrn2", name, "hgrn2", {.made = {{"shared.lower_bounds", logits}}, .site = {layer, 2}});
}

TEST_CASE("golden: RWKV-5's time mixing, and its earlier versions") {
  for (const char* name : {"time_mix_T17", "time_mix_T64", "time_mix_state"})
    check_layer("rwkv5", name, "rwkv5", {.site = {1, 4}});
  check_layer("rwkv5", "v5_1_time_mix_T17", "rwkv5", {.options = {{"version", "5.1"}}, .site = {1, 4}});
  check_layer("rwkv5", "v5_r3r2_time_mix_T17", "rwkv5", {.options = {{"version", "r3r2"}}, .site = {1, 4}});
}

TEST_CASE("golden: RWKV-6's time mixing") {
  const auto turned = [](const char* name) { return PublishedName{name, 0, 1, true}; };
  const std::map<std::string, PublishedName> names{{"time_maa_w1.weight", turned("time_maa_w1")},
                                                   {"time_decay_w1.weight", turned("time_decay_w1")},
                                                   {"time_decay_w2.weight", turned("time_decay_w2")}};
  for (const char* name : {"time_mix_T17", "time_mix_T64", "time_mix_state"})
    check_layer("rwkv6", name, "rwkv6", {.names = names, .site = {1, 4}});
}

TEST_CASE("RWKV-5 and RWKV-6 start as published") {
  for (const char* mixer : {"rwkv5", "rwkv6"}) {
    const GoldenCase golden = GoldenFile(mixer).at("time_mix_T17");
    Options options(std::map<std::string, std::string>{{"head_size", "8"}});
    SharedParameters shared;
    const auto made = find_mixer(mixer, false).make({16, 0, 64, {1, 4}, options, shared});
    Parameters parameters([&](const ParameterVisitor& visitor) { made->visit(visitor); }, false);
    parameters.initialise(1);
    Index compared = 0;
    for (const auto& entry : parameters.all()) {
      if (!golden.has("init/" + entry.name)) continue;
      CAPTURE(entry.name);
      CHECK(relative_error(entry.parameter->value().span(), golden.tensor("init/" + entry.name).values) < 1e-6);
      ++compared;
    }
    CHECK(compared == static_cast<Index>(golden.tensors("init").size()));
  }
}
