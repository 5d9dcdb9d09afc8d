// Transformer-XL's layer against the published one, and what is its own: segments, and a cache that is a constant.
#include <doctest/doctest.h>

#include "mixers/instance.h"
#include "models/transformer_xl_names.h"

using namespace quipu;

namespace {

enum Leaf : std::size_t { kCache, kOpen, kOpenRows, kCachedRows };

std::string published_name(const std::string& name) {
  const bool shared = name.starts_with("shared.");
  std::string theirs = transformer_xl_name(shared ? name : "layers.0.mixer." + name).path;
  return shared ? theirs : "l" + theirs.substr(theirs.find(".dec_attn.") + 9);
}

void check_layer(const std::string& name, std::map<std::string, std::string> options) {
  INFO(name);
  const GoldenCase golden = GoldenFile("transformer_xl").at(name);
  const Tensor input = tensor_of(golden.tensor("input/x"));
  const MixerInstance m({"transformer_xl",
                         input.extent(2),
                         static_cast<Index>(golden.number("num_heads")),
                         std::move(options),
                         {1, 3},
                         input.extent(1)});
  for (const auto& e : m.parameters->trainable()) {
    const Tensor value = tensor_of(golden.tensor("param/" + published_name(e.name)));
    REQUIRE(value.count() == e.end - e.begin);
    std::copy_n(value.data(), value.count(), e.parameter->value().data());
  }
  m.parameters->zero_gradients();
  State state = m.mixer->initial_state(input.extent(0));
  if (golden.has("input/mem")) {
    state.real(kCache) = Var::leaf(tensor_of(golden.tensor("input/mem")));
    std::ranges::fill(state.integers(kCachedRows), state.real(kCache).extent(1));
  }
  const Var cache = state.real(kCache);
  const State start = state;
  const Var x = Var::leaf(input);
  const Layout layout = Layout::plain(input.extent(0), input.extent(1));
  Tape tape(true);
  const Var y = m.mixer->forward(tape, x, {.layout = layout}, state);
  CHECK(relative_error(y.value(), golden.tensor("output")) < kOutputTolerance);
  tape.backward(y, tensor_of(golden.tensor("cotangent")));
  CHECK(relative_error(x.gradient()->sum(), golden.tensor("grad/input/x")) < kGradientTolerance);
  // The published gradient of the memory is that of a layer alone; between segments there is none.
  if (cache.wants_gradient()) CHECK(cache.gradient()->empty());
  for (const auto& e : m.parameters->trainable()) {
    CAPTURE(e.name);
    const auto g =
        m.parameters->gradients().subspan(static_cast<std::size_t>(e.begin), static_cast<std::size_t>(e.end - e.begin));
    CHECK(relative_error(g, golden.tensor("grad/param/" + published_name(e.name)).values) < kGradientTolerance);
  }
  State stepped = start;
  CHECK(relative_error(m.steps(input, stepped), golden.tensor("output")) < kOutputTolerance);
}

/// Gradients of x and of the parameters, x read in pieces of `piece` tokens, with fixed cotangents.
std::vector<Real> gradients(const MixerInstance& m, const Tensor& x, Index piece) {
  m.parameters->zero_gradients();
  Tape tape(true);
  State state = m.mixer->initial_state(x.extent(0));
  std::vector<Var> inputs;
  std::vector<std::pair<Var, Tensor>> seeds;
  for (Index t = 0; t < x.extent(1); t += piece) {
    const Index end = std::min(x.extent(1), t + piece);
    inputs.push_back(Var::leaf(tokens_of(x, t, end)));
    const Layout layout = Layout::plain(x.extent(0), end - t);
    seeds.emplace_back(m.mixer->forward(tape, inputs.back(), {.layout = layout}, state),
                       tokens_of(random_tensor(x.shape(), 21), t, end));
    CHECK_FALSE(state.real(kCache).wants_gradient());
  }
  tape.backward(seeds);
  const auto flat = m.parameters->gradients();
  std::vector<Real> all(flat.begin(), flat.end());
  for (Index b = 0; b < x.extent(0); ++b)
    for (const Var& input : inputs) {
      const Tensor lane = lane_of(input.gradient()->sum(), b);
      all.insert(all.end(), lane.span().begin(), lane.span().end());
    }
  return all;
}

}  // namespace

TEST_CASE("transformer-xl: the published layer, over a cache and without one") {
  check_layer("attn_postnorm_T17_mem11", {{"memory", "11"}});
  check_layer("attn_prenorm_T64_nomem", {{"memory", "0"}, {"pre_norm", "true"}});
}

TEST_CASE("transformer-xl: gradients are those of the segments one by one, however the input is cut") {
  constexpr double kSame = kIsDouble ? 1e-12 : 1e-4;
  for (const MixerVariant& variant : mixer_variants()) {
    if (variant.name != "transformer_xl" || variant.length > 100) continue;
    INFO(describe(variant));
    const MixerInstance m(variant);
    const Tensor x = random_tensor({2, 3 * variant.length + 2, m.dim}, 1);
    const std::vector<Real> one_by_one = gradients(m, x, variant.length);
    for (const Index piece : {x.extent(1), Index{5}, variant.length + 1})
      CHECK(relative_error(gradients(m, x, piece), one_by_one) < kSame);
  }
}

TEST_CASE("transformer-xl: a row sees the cache and its segment, and with same_length as many rows as the cache has") {
  const Index dim = 24, segment = 7, memory = 5, length = 30;
  for (const bool same_length : {false, true}) {
    CAPTURE(same_length);
    const MixerInstance m({"transformer_xl",
                           dim,
                           3,
                           {{"memory", "5"}, {"same_length", same_length ? "true" : "false"}},
                           {1, 3},
                           segment});
    const Tensor x = random_tensor({1, length, dim}, 1);
    State state = m.mixer->initial_state(1);
    const Tensor y = m.forward(x, state);
    for (Index s = 0; s < length; ++s) {
      const Tensor other = x.clone();
      for (Index c = 0; c < dim; ++c) other.data()[s * dim + c] += 2;
      State again = m.mixer->initial_state(1);
      const Tensor z = m.forward(other, again);
      for (Index t = 0; t < length; ++t) {
        const bool sees = s <= t && s >= (same_length ? t - memory + 1 : t / segment * segment - memory);
        CAPTURE(s);
        CAPTURE(t);
        CHECK((relative_error(tokens_of(z, t, t + 1), tokens_of(y, t, t + 1)) > 0) == sees);
      }
    }
  }
}

TEST_CASE("transformer-xl: what cannot be is refused") {
  CHECK_THROWS_WITH_AS(MixerInstance({"transformer_xl", 24, 3, {{"memory", "0"}, {"same_length", "true"}}}),
                       doctest::Contains("memory=0"), UsageError);
  CHECK_THROWS_WITH_AS(MixerInstance({"transformer_xl", 15, 3, {}}), doctest::Contains("--dim 15"), UsageError);
}
