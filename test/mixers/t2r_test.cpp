#include <doctest/doctest.h>

#include "mixers/instance.h"

using namespace quipu;

namespace {

/// The mixer with the parameters of `source`, but without gradients, as a model that only decodes.
class DecodingTwin {
 public:
  DecodingTwin(const MixerVariant& v, const MixerInstance& source) {
    Options options(v.options);
    mixer = find_mixer(v.name, false).make({v.dim, v.heads, 512, v.site, options, shared});
    parameters = std::make_unique<Parameters>([&](const ParameterVisitor& visitor) { mixer->visit(visitor); }, false);
    const std::vector<Parameters::Entry> from = source.parameters->all(), to = parameters->all();
    for (std::size_t i = 0; i < from.size(); ++i)
      std::copy_n(from[i].parameter->value().data(), from[i].parameter->value().count(),
                  to[i].parameter->value().data());
  }

  SharedParameters shared;
  std::unique_ptr<Mixer> mixer;
  std::unique_ptr<Parameters> parameters;
};

}  // namespace

TEST_CASE("t2r: the folded map decodes as the unfolded one") {
  for (const char* features : {"5", "20"})  // folded, and too wide to pay
    for (const char* gate : {"false", "true"}) {
      CAPTURE(features);
      const MixerVariant variant{"t2r", 24, 3, {{"feature_dim", features}, {"input_gate", gate}}};
      const MixerInstance trained(variant);
      const DecodingTwin twin(variant, trained);
      const Tensor x = random_tensor({2, 9, 24}, 1);
      State state = trained.mixer->initial_state(2), other = state;
      const Tensor y = trained.forward(x, state);
      Scratch scratch;
      const Layout layout = Layout::plain(2, 1);
      Tensor in({2, 24}), out({2, 24});
      for (Index t = 0; t < 9; ++t) {
        for (Index b = 0; b < 2; ++b) std::copy_n(x.data() + (b * 9 + t) * 24, 24, in.data() + b * 24);
        scratch.clear();
        twin.mixer->step(in.matrix(), out.matrix(), {.layout = layout, .scratch = &scratch}, other);
        for (Index b = 0; b < 2; ++b)
          for (Index c = 0; c < 24; ++c)
            CHECK(static_cast<double>(out.data()[b * 24 + c]) ==
                  doctest::Approx(static_cast<double>(y.data()[(b * 9 + t) * 24 + c])).epsilon(1e-4));
      }
      CHECK(state_error(other, state) < (kIsDouble ? 1e-10 : 1e-4));
    }
}
