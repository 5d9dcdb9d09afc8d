#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "golden.h"
#include "grad/ops_linear.h"
#include "mixers/instance.h"

// Layers of the published implementations against the mixers: outputs, final states and all gradients.
namespace quipu::inline QUIPU_REAL_NS {

/// What the published code calls a parameter of ours: another name, part `part` of `parts` along its first axis, or its
/// transpose.
struct PublishedName {
  std::string name;
  Index part = 0, parts = 1;
  bool transposed = false;
};

/// What the published code calls a leaf of our state, and how its numbers become ours.
struct PublishedLeaf {
  std::string name;
  std::function<GoldenTensor(const GoldenTensor&)> convert{};
};

/// A leaf with the last W-1 inputs of a short convolution, [B,W-1,C], where the published code keeps W, [B,C,W]: what
/// it calls the leaf, and the projection whose rows from `row` make these inputs.
struct PublishedConvolution {
  std::string name, projection;
  Index row = 0;
};

/// A parameter of ours made from what a case has, or the gradient that it must have: `group` is "param/" or a group of
/// gradients such as "grad/param/".
using MadeParameter = std::function<GoldenTensor(const GoldenCase& golden, const std::string& group)>;

/// How a published layer is set up here. What is empty is found by itself: an option of the mixer from the attribute of
/// its name, parameters and leaves by their names.
struct LayerForm {
  std::map<std::string, std::string> options{};
  std::map<std::string, PublishedName> names{};
  std::map<std::string, PublishedLeaf> leaves{};
  std::map<std::string, PublishedConvolution> convolutions{};
  std::map<std::string, MadeParameter> made{};
  std::map<std::string, std::string> buffers{};  ///< paths of parameters that the case has as inputs
  Index heads = 0;                               ///< 0: the attribute num_heads, nheads or heads
  Site site{1, 3};
  Index length = 512;  ///< of mixers of fixed length
  /// Parts of the published state that ours does without, made on the tape from x, with their cotangents.
  std::function<std::vector<std::pair<Var, Tensor>>(Tape&, const Var& x, const GoldenCase&, const MixerInstance&)>
      more_outputs{};
  double output_tolerance = kOutputTolerance, gradient_tolerance = kGradientTolerance;
};

/// Part of a published tensor, as `published` says.
inline GoldenTensor part_of(const GoldenTensor& whole, const PublishedName& published) {
  const std::size_t size = whole.values.size() / static_cast<std::size_t>(published.parts);
  const auto begin =
      whole.values.begin() + static_cast<std::ptrdiff_t>(size * static_cast<std::size_t>(published.part));
  GoldenTensor part{whole.shape, {begin, begin + static_cast<std::ptrdiff_t>(size)}};
  part.shape[0] /= published.parts;
  if (!published.transposed) return part;
  const auto rows = static_cast<std::size_t>(part.shape[0]), cols = static_cast<std::size_t>(part.shape[1]);
  GoldenTensor turned{{part.shape[1], part.shape[0]}, std::vector<double>(part.values.size())};
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < cols; ++c) turned.values[c * rows + r] = part.values[r * cols + c];
  return turned;
}

/// The last W-1 of W inputs [B,C,W], as [B,W-1,C].
inline GoldenTensor last_inputs_of(const GoldenTensor& inputs) {
  const Index batch = inputs.shape[0], channels = inputs.shape[1], width = inputs.shape[2];
  GoldenTensor last{{batch, width - 1, channels}, {}};
  for (Index b = 0; b < batch; ++b)
    for (Index j = 1; j < width; ++j)
      for (Index c = 0; c < channels; ++c)
        last.values.push_back(inputs.values[static_cast<std::size_t>((b * channels + c) * width + j)]);
  return last;
}

/// Where key heads serve groups, the published state repeats each; here it stands once: every `group`-th head of it.
inline GoldenTensor each_once(const GoldenTensor& state, const Shape& shape) {
  if (state.shape.size() != static_cast<std::size_t>(shape.rank()) || shape.rank() < 3 || state.shape[1] == shape[1])
    return state;
  const Index group = state.shape[1] / shape[1];
  const auto size = static_cast<Index>(state.values.size()) / (state.shape[0] * state.shape[1]);
  GoldenTensor once{{shape.begin(), shape.end()}, {}};
  for (Index i = 0; i < state.shape[0] * state.shape[1]; i += group)
    once.values.insert(once.values.end(), state.values.begin() + i * size, state.values.begin() + (i + 1) * size);
  return once;
}

/// One golden case of a layer. `check` runs it without and, where the file has them, with gradients into the state.
class GoldenLayer {
 public:
  GoldenLayer(GoldenCase golden, const std::string& mixer, LayerForm form)
      : golden_(std::move(golden)), form_(std::move(form)), m_(variant(mixer), form_.length) {
    for (const auto& entry : m_.parameters->all()) {
      const auto buffer = form_.buffers.find(entry.name);
      const GoldenTensor value =
          buffer == form_.buffers.end() ? published("param/", entry.name) : golden_.tensor(buffer->second);
      REQUIRE(static_cast<Index>(value.values.size()) == entry.parameter->shape().count());
      for (std::size_t i = 0; i < value.values.size(); ++i)
        entry.parameter->value().data()[i] = static_cast<Real>(value.values[i]);
    }
  }

  void check() {
    INFO(golden_.name());
    run("grad/", false);
    if (golden_.has("grad_with_state")) run("grad_with_state/", true);
  }

 private:
  /// The mixer's options, from attributes of the case where they have their names (or num_NAME).
  MixerVariant variant(const std::string& mixer) const {
    const Index dim = golden_.tensor("input/x").shape[2];
    MixerVariant v{mixer, dim, heads(), form_.options, form_.site};
    for (const Options::Described& option : MixerInstance::options_of(v))
      for (const std::string& attribute : {option.key, "num_" + option.key})
        if (golden_.has_attribute(attribute) && !form_.options.contains(option.key)) {
          const double value = golden_.number(attribute);
          const bool flag = option.value == "true" || option.value == "false";
          v.options[option.key] = flag ? (value != 0 ? "true" : "false") : fmt::format("{}", value);
        }
    return v;
  }

  Index heads() const {
    for (const char* name : {"num_heads", "nheads", "heads"})
      if (form_.heads == 0 && golden_.has_attribute(name)) return static_cast<Index>(golden_.number(name));
    return form_.heads;
  }

  const PublishedName* published_name(const std::string& name) const {
    const auto found = form_.names.find(name);
    return found == form_.names.end() ? nullptr : &found->second;
  }
  GoldenTensor published(const std::string& group, const std::string& name) const {
    if (const auto made = form_.made.find(name); made != form_.made.end()) return made->second(golden_, group);
    const PublishedName* const known = published_name(name);
    return known == nullptr ? golden_.tensor(group + name) : part_of(golden_.tensor(group + known->name), *known);
  }
  /// The largest element of the published array that holds it: the gradient of a key's bias alone is 0 but for
  /// rounding.
  double size_of(const std::string& group, const std::string& name) const {
    if (form_.made.contains(name)) return largest_element(published(group, name));
    const PublishedName* const known = published_name(name);
    return largest_element(golden_.tensor(group + (known == nullptr ? name : known->name)));
  }

  std::string published_leaf_name(const std::string& leaf) const {
    if (const auto found = form_.convolutions.find(leaf); found != form_.convolutions.end()) return found->second.name;
    const auto found = form_.leaves.find(leaf);
    return found == form_.leaves.end() ? leaf : found->second.name;
  }
  bool has_leaf(const std::string& group, const std::string& leaf) const {
    return golden_.has(group + published_leaf_name(leaf));
  }
  GoldenTensor published_leaf(const std::string& group, const StateLeaf& leaf) const {
    if (form_.convolutions.contains(leaf.name))
      return last_inputs_of(golden_.tensor(group + published_leaf_name(leaf.name)));
    const auto found = form_.leaves.find(leaf.name);
    if (found == form_.leaves.end()) return each_once(golden_.tensor(group + leaf.name), leaf.value.shape());
    const GoldenTensor value = golden_.tensor(group + found->second.name);
    return found->second.convert ? found->second.convert(value) : value;
  }
  static Tensor shaped(const GoldenTensor& value, const Shape& shape) {
    REQUIRE(static_cast<Index>(value.values.size()) == shape.count());
    Tensor x(shape);
    for (std::size_t i = 0; i < value.values.size(); ++i) x.data()[i] = static_cast<Real>(value.values[i]);
    return x;
  }

  /// The oldest of the W inputs that the published code keeps is none of ours: its gradient goes straight back through
  /// the projection that made it.
  void seed_oldest_input(Tape& tape, const Var& x, const PublishedConvolution& convolution,
                         std::vector<std::pair<Var, Tensor>>& seeds) const {
    const GoldenTensor d = golden_.tensor("cotangent_state/" + convolution.name);
    const Index channels = d.shape[1], width = d.shape[2], length = x.extent(1);
    for (const auto& entry : m_.parameters->all()) {
      if (entry.name != convolution.projection) continue;
      const Var input = linear(tape, x, entry.parameter->rows(convolution.row, convolution.row + channels));
      Tensor seed = Tensor::zeros(input.shape());
      for (Index b = 0; b < d.shape[0]; ++b)
        for (Index c = 0; c < channels; ++c)
          seed.data()[(b * length + length - width) * channels + c] =
              static_cast<Real>(d.values[static_cast<std::size_t>((b * channels + c) * width)]);
      seeds.emplace_back(input, seed);
    }
  }

  State initial_state(Index lanes) const {
    State state = m_.mixer->initial_state(lanes);
    for (StateLeaf& leaf : state.leaves()) {
      const auto found = form_.leaves.find(leaf.name);
      const std::string& attribute = found == form_.leaves.end() ? leaf.name : found->second.name;
      if (leaf.is_integer() && golden_.has_attribute(attribute))
        std::ranges::fill(leaf.integers, static_cast<std::int64_t>(golden_.number(attribute)));
      if (!leaf.is_integer() && has_leaf("state0/", leaf.name))
        leaf.value = Var::leaf(shaped(published_leaf("state0/", leaf), leaf.value.shape()));
    }
    return state;
  }

  void run(const std::string& gradients, bool with_state) {
    const Var x = Var::leaf(tensor_of(golden_.tensor("input/x")));
    Carry carry;
    if (golden_.has("input/v_first")) carry.first_values = Var::leaf(tensor_of(golden_.tensor("input/v_first")));
    const Var first_values = carry.first_values;
    State state = initial_state(x.extent(0));
    const State start = state;
    m_.parameters->zero_gradients();
    Tape tape(true);
    const Layout layout = Layout::plain(x.extent(0), x.extent(1));
    const Var y = m_.mixer->forward(tape, x, {.layout = layout, .carry = &carry}, state);
    CHECK(relative_error(y.value(), golden_.tensor("output")) < form_.output_tolerance);
    std::vector<std::pair<Var, Tensor>> seeds{{y, tensor_of(golden_.tensor("cotangent"))}};
    for (const StateLeaf& leaf : state.leaves()) {
      CAPTURE(leaf.name);
      if (!has_leaf("final_state/", leaf.name)) continue;
      const GoldenTensor wanted = published_leaf("final_state/", leaf);
      CHECK(relative_error(leaf.value.value().span(), wanted.values) < form_.output_tolerance);
      if (with_state)
        seeds.emplace_back(leaf.value, shaped(published_leaf("cotangent_state/", leaf), leaf.value.shape()));
      if (const auto found = form_.convolutions.find(leaf.name); with_state && found != form_.convolutions.end())
        seed_oldest_input(tape, x, found->second, seeds);
    }
    if (with_state && form_.more_outputs)
      for (const auto& seed : form_.more_outputs(tape, x, golden_, m_)) seeds.push_back(seed);
    tape.backward(seeds);
    CHECK(relative_error(x.gradient()->sum(), golden_.tensor(gradients + "input/x")) < form_.gradient_tolerance);
    if (first_values.defined())
      CHECK(relative_error(first_values.gradient()->sum(), golden_.tensor(gradients + "input/v_first")) <
            form_.gradient_tolerance);
    check_parameters(gradients);
    for (const StateLeaf& leaf : start.leaves())
      if (!leaf.is_integer() && has_leaf(gradients + "state0/", leaf.name))
        CHECK(relative_error(leaf.value.gradient()->sum().span(), published_leaf(gradients + "state0/", leaf).values) <
              form_.gradient_tolerance);
  }

  void check_parameters(const std::string& gradients) const {
    for (const auto& entry : m_.parameters->trainable()) {
      CAPTURE(entry.name);
      const PublishedName* const known = published_name(entry.name);
      if (!form_.made.contains(entry.name) &&
          !golden_.has(gradients + "param/" + (known == nullptr ? entry.name : known->name))) {
        CHECK(gradients == "grad_with_state/");  // the files leave out the largest of these
        continue;
      }
      const auto gradient = m_.parameters->gradients().subspan(static_cast<std::size_t>(entry.begin),
                                                               static_cast<std::size_t>(entry.end - entry.begin));
      CHECK(relative_error(gradient, published(gradients + "param/", entry.name).values,
                           size_of(gradients + "param/", entry.name)) < form_.gradient_tolerance);
    }
  }

  GoldenCase golden_;
  LayerForm form_;
  MixerInstance m_;
};

inline void check_layer(const std::string& file, const std::string& name, const std::string& mixer,
                        const LayerForm& form = {}) {
  GoldenLayer(GoldenFile(file).at(name), mixer, form).check();
}

}  // namespace quipu::inline QUIPU_REAL_NS
