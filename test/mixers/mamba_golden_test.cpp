// Mamba's layers: their convolution's state is published with one input more than it needs.
#include "mixers/golden_layer.h"

using namespace quipu;

TEST_CASE("golden: Mamba") {
  for (const char* name : {"layer_T17", "layer_T64", "layer_state"})
    check_layer("mamba", name, "mamba", {.convolutions = {{"conv", {"conv", "in_proj.weight", 0}}}});
}
