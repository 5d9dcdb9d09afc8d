// Layers of the published implementations: outputs, final states and all gradients.
#include "golden.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "mixers/instance.h"

using namespace quipu;

namespace {

/// Attributes of a golden case that say what a mixer's options are called here.
const std::map<std::string, std::string> kOptionNames{
    {"num_slots", "slots"}, {"num_kv_heads", "kv_heads"}, {"normalize", "normalise"}};

/// Parameters that the published code calls otherwise, or keeps in one: part `part` of `parts` along the first axis.
struct PublishedName {
  std::string name;
  Index part = 0, parts = 1;
};
using Names = std::map<std::string, PublishedName>;

const Names kGpt2Names{{"q_proj.weight", {"c_attn.weight", 0, 3}}, {"k_proj.weight", {"c_attn.weight", 1, 3}},
                       {"v_proj.weight", {"c_attn.weight", 2, 3}}, {"q_proj.bias", {"c_attn.bias", 0, 3}},
                       {"k_proj.bias", {"c_attn.bias", 1, 3}},     {"v_proj.bias", {"c_attn.bias", 2, 3}},
                       {"o_proj.weight", {"c_proj.weight"}},       {"o_proj.bias", {"c_proj.bias"}}};
const Names kLlamaNames{{"q_proj.weight", {"wq.weight"}},
                        {"k_proj.weight", {"wk.weight"}},
                        {"v_proj.weight", {"wv.weight"}},
                        {"o_proj.weight", {"wo.weight"}}};

GoldenTensor part_of(const GoldenTensor& whole, const PublishedName& published) {
  const std::size_t size = whole.values.size() / static_cast<std::size_t>(published.parts);
  const auto begin =
      whole.values.begin() + static_cast<std::ptrdiff_t>(size * static_cast<std::size_t>(published.part));
  GoldenTensor part{whole.shape, {begin, begin + static_cast<std::ptrdiff_t>(size)}};
  part.shape[0] /= published.parts;
  return part;
}

/// Where key heads serve groups, the published state repeats each; here it stands once: every `group`-th head of it.
GoldenTensor each_once(const GoldenTensor& state, const Shape& shape) {
  if (state.shape.size() != static_cast<std::size_t>(shape.rank()) || state.shape[1] == shape[1]) return state;
  const Index group = state.shape[1] / shape[1];
  const auto size = static_cast<Index>(state.values.size()) / (state.shape[0] * state.shape[1]);
  GoldenTensor once{{shape.begin(), shape.end()}, {}};
  for (Index i = 0; i < state.shape[0] * state.shape[1]; i += group)
    once.values.insert(once.values.end(), state.values.begin() + i * size, state.values.begin() + (i + 1) * size);
  return once;
}

class LayerCase {
 public:
  LayerCase(GoldenCase golden, const std::string& mixer, std::map<std::string, std::string> options, Names names)
      : golden_(std::move(golden)), names_(std::move(names)), m_(variant(mixer, std::move(options))) {
    for (const auto& entry : m_.parameters->all()) {
      const Tensor value = tensor_of(published("param/", entry.name));
      require_shape(entry.name.c_str(), value.shape(), entry.parameter->shape());
      std::copy_n(value.data(), value.count(), entry.parameter->value().data());
    }
  }

  void check() {
    INFO(golden_.name());
    run("grad/", false);
    if (golden_.has("grad_with_state")) run("grad_with_state/", true);
  }

 private:
  MixerVariant variant(const std::string& mixer, std::map<std::string, std::string> options) const {
    for (const auto& [attribute, option] : kOptionNames)
      if (golden_.has_attribute(attribute))
        options[option] = attribute == "normalize" ? (golden_.number(attribute) != 0 ? "true" : "false")
                                                   : std::to_string(static_cast<Index>(golden_.number(attribute)));
    return {mixer, golden_.tensor("input/x").shape[2], static_cast<Index>(golden_.number("num_heads")), options};
  }

  /// The largest element of the published array that holds it: the gradient of a key's bias alone is 0 but for
  /// rounding.
  double size_of(const std::string& group, const std::string& name) const {
    const auto found = names_.find(name);
    return largest_element(golden_.tensor(group + (found == names_.end() ? name : found->second.name)));
  }

  GoldenTensor published(const std::string& group, const std::string& name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? golden_.tensor(group + name)
                                 : part_of(golden_.tensor(group + found->second.name), found->second);
  }

  void run(const std::string& gradients, bool with_state) {
    const Var x = Var::leaf(tensor_of(golden_.tensor("input/x")));
    State state = m_.mixer->initial_state(x.extent(0));
    for (StateLeaf& leaf : state.leaves())
      if (golden_.has("state0/" + leaf.name)) leaf.value = Var::leaf(tensor_of(golden_.tensor("state0/" + leaf.name)));
    const State start = state;
    m_.parameters->zero_gradients();
    Tape tape(true);
    const Layout layout = Layout::plain(x.extent(0), x.extent(1));
    const Var y = m_.mixer->forward(tape, x, {.layout = layout}, state);
    CHECK(relative_error(y.value(), golden_.tensor("output")) < kOutputTolerance);
    std::vector<std::pair<Var, Tensor>> seeds{{y, tensor_of(golden_.tensor("cotangent"))}};
    for (const StateLeaf& leaf : state.leaves()) {
      CAPTURE(leaf.name);
      if (!golden_.has("final_state/" + leaf.name)) continue;
      const GoldenTensor wanted = each_once(golden_.tensor("final_state/" + leaf.name), leaf.value.shape());
      CHECK(relative_error(leaf.value.value(), wanted) < kOutputTolerance);
      if (with_state) seeds.emplace_back(leaf.value, tensor_of(golden_.tensor("cotangent_state/" + leaf.name)));
    }
    tape.backward(seeds);
    CHECK(relative_error(x.gradient()->sum(), golden_.tensor(gradients + "input/x")) < kGradientTolerance);
    for (const auto& entry : m_.parameters->trainable()) {
      CAPTURE(entry.name);
      const auto gradient = m_.parameters->gradients().subspan(static_cast<std::size_t>(entry.begin),
                                                               static_cast<std::size_t>(entry.end - entry.begin));
      CHECK(relative_error(gradient, published(gradients + "param/", entry.name).values,
                           size_of(gradients + "param/", entry.name)) < kGradientTolerance);
    }
    for (const StateLeaf& leaf : start.leaves())
      if (golden_.has(gradients + "state0/" + leaf.name))
        CHECK(relative_error(leaf.value.gradient()->sum(), golden_.tensor(gradients + "state0/" + leaf.name)) <
              kGradientTolerance);
  }

  GoldenCase golden_;
  Names names_;
  MixerInstance m_;
};

void check_layer(const std::string& file, const std::string& name, const std::string& mixer,
                 const std::map<std::string, std::string>& options = {}, const Names& names = {}) {
  LayerCase(GoldenFile(file).at(name), mixer, options, names).check();
}

}  // namespace

TEST_CASE("golden: every mixer with a file of its own name") {
  for (const MixerEntry& entry : registry()) {
    if (!GoldenFile::exists(entry.name)) continue;
    const GoldenFile file(entry.name);
    for (const std::string& name : file.cases()) {
      if (file.at(name).text("level") != "layer") continue;
      const bool fla = std::string(entry.name) == "linear_attention";
      check_layer(entry.name, name, entry.name,
                  fla ? std::map<std::string, std::string>{{"variant", "fla"}} : std::map<std::string, std::string>{});
    }
  }
}

TEST_CASE("golden: GPT-2's attention") {
  for (const char* name : {"attn_T17", "attn_T64"})
    check_layer("softmax_attention", name, "attention", {{"rope", "none"}, {"bias", "true"}}, kGpt2Names);
}

TEST_CASE("golden: Llama's attention, with grouped heads and interleaved rotation") {
  for (const char* name : {"attn_T17", "attn_gqa_T64"})
    check_layer("transformer_pp", name, "attention", {{"rope", "interleaved"}}, kLlamaNames);
}

TEST_CASE("golden: attention over a cache") {
  const GoldenCase golden = GoldenFile("softmax_attention").at("kv_cache");
  MixerInstance m({"attention", 16, 2, {{"rope", "none"}, {"bias", "true"}}});
  for (const auto& entry : m.parameters->all()) {
    const PublishedName& published = kGpt2Names.at(entry.name);
    const Tensor value = tensor_of(part_of(golden.tensor("param/" + published.name), published));
    std::copy_n(value.data(), value.count(), entry.parameter->value().data());
  }
  m.parameters->zero_gradients();
  Tape tape(true);
  const Var prefix = Var::leaf(tensor_of(golden.tensor("input/x_prefix")));
  const Var x = Var::leaf(tensor_of(golden.tensor("input/x")));
  State state = m.mixer->initial_state(2);
  const Layout first = Layout::plain(2, prefix.extent(1)), second = Layout::plain(2, x.extent(1));
  m.mixer->forward(tape, prefix, {.layout = first}, state);
  const Var y = m.mixer->forward(tape, x, {.layout = second}, state);
  CHECK(relative_error(y.value(), golden.tensor("output")) < kOutputTolerance);
  // The file holds [B,H,T,K]; the cache [B,n,H,K].
  for (const auto& [leaf, name] : {std::pair{0, "final_state/k"}, {1, "final_state/v"}}) {
    const GoldenTensor wanted = golden.tensor(name);
    const Tensor& cache = state.real(static_cast<std::size_t>(leaf)).value();
    const Index heads = wanted.shape[1], tokens = wanted.shape[2], width = wanted.shape[3];
    std::vector<double> held;
    for (Index b = 0; b < 2; ++b)
      for (Index h = 0; h < heads; ++h)
        for (Index t = 0; t < tokens; ++t)
          for (Index c = 0; c < width; ++c)
            held.push_back(static_cast<double>(cache.data()[((b * cache.extent(1) + t) * heads + h) * width + c]));
    CHECK(relative_error(held, wanted.values) < kOutputTolerance);
  }
  tape.backward(y, tensor_of(golden.tensor("cotangent")));
  CHECK(relative_error(x.gradient()->sum(), golden.tensor("grad/input/x")) < kGradientTolerance);
  CHECK(relative_error(prefix.gradient()->sum(), golden.tensor("grad/input/x_prefix")) < kGradientTolerance);
}
