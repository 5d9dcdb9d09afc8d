#pragma once
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "compare.h"
#include "mixers/registry.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A mixer of the registry with options, small and with all extents different.
struct MixerVariant {
  std::string name;
  Index dim, heads;
  std::map<std::string, std::string> options;
  Site site{1, 3};
  Index length = 512;  ///< of mixers of fixed length, and of segments
};

/// Every mixer with its defaults, and those with options that change the algorithm, with these too.
inline std::vector<MixerVariant> mixer_variants() {
  std::vector<MixerVariant> variants;
  for (const MixerEntry& entry : registry()) variants.push_back({entry.name, 24, entry.channel ? 0 : 3, {}});
  const std::vector<MixerVariant> more{
      {"attention", 24, 6, {{"kv_heads", "2"}, {"rope", "interleaved"}}},
      {"attention", 24, 3, {{"window", "5"}, {"bias", "true"}}},
      {"attention", 24, 6, {{"kv_heads", "2"}, {"use_short_conv", "true"}}},
      {"attention", 24, 3, {{"window", "70"}, {"rope", "none"}}},
      {"transformer_xl", 24, 3, {{"memory", "5"}}, {1, 3}, 7},
      {"transformer_xl", 24, 6, {{"memory", "17"}, {"pre_norm", "true"}, {"clamp", "9"}}, {1, 3}, 11},
      {"transformer_xl", 24, 3, {{"memory", "70"}, {"clamp", "3"}}, {1, 3}, 66},
      {"transformer_xl", 24, 3, {{"memory", "6"}, {"same_length", "true"}, {"pre_norm", "true"}}, {1, 3}, 4},
      {"transformer_xl", 24, 3, {{"memory", "0"}}, {1, 3}, 13},
      {"transformer_xl", 24, 3, {{"memory", "3"}}, {1, 3}, 1},
      {"linear_attention", 24, 3, {{"variant", "fla"}}},
      {"linear_attention", 24, 3, {{"variant", "fla"}, {"normalise", "true"}}},
      {"gsa", 24, 3, {{"slots", "5"}}},
      {"gsa", 24, 6, {{"kv_heads", "2"}, {"slots", "7"}, {"gate_logit_normalizer", "0.05"}}},
      {"aft", 24, 3, {{"form", "full"}, {"rank", "5"}}},
      {"aft", 24, 3, {{"form", "full"}, {"rank", "0"}, {"bias", "true"}}},
      {"aft", 24, 3, {{"form", "local"}, {"window", "7"}, {"rank", "3"}}},
      {"rwkv_channel", 24, 0, {{"version", "6"}, {"dim_ffn", "20"}}},
      {"rwkv_channel", 24, 0, {{"version", "7"}}},
      {"mamba", 24, 0, {{"d_state", "3"}, {"d_conv", "2"}, {"expand", "3"}, {"dt_rank", "5"}}},
      {"deltanet", 24, 3, {{"use_short_conv", "false"}, {"use_gate", "true"}, {"expand_v", "0.5"}}},
      {"deltanet", 24, 3, {{"conv_size", "2"}, {"allow_neg_eigval", "true"}, {"expand_k", "0.25"}}},
      {"gated_deltanet", 24, 2, {{"num_v_heads", "6"}, {"head_dim", "5"}, {"allow_neg_eigval", "true"}}},
      {"gated_deltanet", 24, 3, {{"use_short_conv", "false"}, {"use_gate", "false"}, {"expand_v", "1"}}},
      {"mamba2", 24, 0, {}},
      {"mamba2", 24, 6, {{"ngroups", "2"}, {"d_state", "5"}, {"d_conv", "3"}}},
      {"gsa", 24, 6, {{"kv_heads", "2"}, {"slots", "7"}, {"use_short_conv", "true"}, {"conv_bias", "true"}}},
      {"rwkv7", 24, 2, {{"decay_low_rank_dim", "3"}, {"gate_low_rank_dim", "5"}, {"groupnorm_eps", "1e-5"}}},
      {"rwkv7", 24, 0, {{"head_size", "8"}}, {0, 3}},
      {"gla", 24, 3, {{"use_short_conv", "true"}, {"expand_k", "1"}, {"gate_logit_normalizer", "0.1"}}},
      {"retnet", 24, 3, {{"variant", "torchscale"}}},
      {"retnet", 24, 3, {{"use_short_conv", "true"}, {"expand_v", "1"}}},
      {"hgrn2", 24, 3, {}, {0, 3}},
      {"hgrn2", 24, 3, {{"use_short_conv", "true"}, {"conv_size", "3"}}},
      {"memsizer", 24, 3, {{"slots", "5"}, {"variant", "paper"}, {"keys", "fixed"}}},
      {"memsizer", 24, 3, {{"slots", "7"}, {"keys", "input"}}},
      {"memsizer", 24, 1, {{"slots", "7"}, {"variant", "paper"}, {"keys", "input"}}},
      {"abc", 24, 3, {{"slots", "5"}, {"use_rope", "false"}, {"logit_bound", "1.5"}, {"expand_v", "1.25"}}},
      {"performer", 24, 3, {{"nb_features", "5"}}},
      {"performer", 24, 3, {{"nb_features", "5"}, {"feature_map", "hyperbolic"}}},
      {"rfa", 24, 3, {{"proj_dim", "5"}, {"gate", "true"}, {"tau", "1.3"}}},
      {"rfa", 24, 3, {{"proj_dim", "5"}, {"variant", "code"}, {"orthogonal", "true"}}},
      {"rfa", 24, 3, {{"proj_dim", "7"}, {"variant", "masked"}, {"gate", "true"}}},
      {"t2r", 24, 3, {{"feature_dim", "5"}, {"input_gate", "true"}}},
      {"linformer", 24, 3, {{"k", "5"}, {"share_kv", "true"}}},
      {"synthesizer", 24, 3, {{"variant", "factorized"}, {"rank", "5"}}},
      {"synthesizer", 24, 3, {{"variant", "factorized"}, {"fixed", "true"}}},
      {"synthesizer", 24, 3, {{"variant", "dense"}}},
      {"rwkv5", 24, 3, {{"version", "5.1"}}},
      {"rwkv5", 24, 2, {{"version", "r3r2"}}},
      {"rwkv6", 24, 2, {{"mix_low_rank_dim", "5"}, {"decay_low_rank_dim", "3"}}},
      {"mlp", 24, 0, {{"activation", "relu2"}, {"bias", "false"}, {"hidden", "20"}}},
  };
  variants.insert(variants.end(), more.begin(), more.end());
  // QUIPU_TEST_MIXERS=gsa,gla runs the tests of these alone, while one works on them.
  if (const char* const only = std::getenv("QUIPU_TEST_MIXERS"))
    std::erase_if(variants, [names = "," + std::string(only) + ","](const MixerVariant& v) {
      return names.find("," + v.name + ",") == std::string::npos;
    });
  return variants;
}

/// Leaves of a state that never carry a gradient, as the mixer is defined: Transformer-XL's cache of closed segments
/// counts as a constant, so that finite differences agree with gradients within a segment alone.
inline std::set<std::string> constant_leaves(const MixerVariant& v) {
  const auto memory = v.options.find("memory");
  if (v.name != "transformer_xl" || (memory != v.options.end() && memory->second == "0")) return {};
  return {"cache"};
}

inline std::string describe(const MixerVariant& v) {
  std::string text = v.name + " heads=" + std::to_string(v.heads);
  if (v.length != 512) text += " length=" + std::to_string(v.length);
  for (const auto& [key, value] : v.options) text += " " + key + "=" + value;
  return text;
}

inline Tensor random_tensor(const Shape& shape, std::uint64_t site, double deviation = 1) {
  Tensor x(shape);
  const Rng rng(11, 0, site);
  for (Index i = 0; i < x.count(); ++i)
    x.data()[i] = static_cast<Real>(deviation * rng.normal(static_cast<std::uint64_t>(i)));
  return x;
}

/// A mixer with parameters large enough that every path matters.
class MixerInstance {
 public:
  explicit MixerInstance(const MixerVariant& v) : MixerInstance(v, v.length) {}
  MixerInstance(const MixerVariant& v, Index length) : dim(v.dim) {
    mixer = make(v, length);
    start();
  }

  MixerInstance(Index width, std::unique_ptr<Mixer> made) : dim(width), mixer(std::move(made)) { start(); }

  /// The options that a mixer reads.
  static std::vector<Options::Described> options_of(const MixerVariant& v) {
    Options options(v.options);
    SharedParameters unused;
    make(v, v.length, options, unused);
    return options.described();
  }

  Tensor forward(const Tensor& x, const Layout& layout, State& state) const {
    Tape tape(false);
    const Context context{.layout = layout};
    return mixer->forward(tape, x, context, state).value();
  }
  Tensor forward(const Tensor& x, State& state) const {
    return forward(x, Layout::plain(x.extent(0), x.extent(1)), state);
  }
  /// Token by token.
  Tensor steps(const Tensor& x, State& state) const {
    const Index batch = x.extent(0), length = x.extent(1);
    Tensor y(x.shape()), in({batch, dim}), out({batch, dim});
    Scratch scratch;
    const Layout layout = Layout::plain(batch, 1);
    for (Index t = 0; t < length; ++t) {
      for (Index b = 0; b < batch; ++b) std::copy_n(x.data() + (b * length + t) * dim, dim, in.data() + b * dim);
      scratch.clear();
      mixer->step(in.matrix(), out.matrix(), {.layout = layout, .scratch = &scratch}, state);
      for (Index b = 0; b < batch; ++b) std::copy_n(out.data() + b * dim, dim, y.data() + (b * length + t) * dim);
    }
    return y;
  }
  /// A state that has read something.
  State used_state(Index batch, Index tokens = 9) const {
    State state = mixer->initial_state(batch);
    forward(random_tensor({batch, tokens, dim}, 55), state);
    return state;
  }

  Index dim;
  SharedParameters shared;
  std::unique_ptr<Mixer> mixer;
  std::unique_ptr<Parameters> parameters;

 private:
  void start() {
    const auto visit = [&](const ParameterVisitor& visitor) {
      mixer->visit(visitor);
      shared.visit(visitor.in("shared"));
    };
    parameters = std::make_unique<Parameters>(visit, true);
    parameters->initialise(3);
    const Tensor noise = random_tensor({parameters->count()}, 99, 0.3);
    for (Index i = 0; i < noise.count(); ++i) parameters->values()[static_cast<std::size_t>(i)] += noise.data()[i];
  }

  std::unique_ptr<Mixer> make(const MixerVariant& v, Index length) {
    Options options(v.options);
    auto made = make(v, length, options, shared);
    options.require_all_known(v.name);
    return made;
  }
  static std::unique_ptr<Mixer> make(const MixerVariant& v, Index length, Options& options, SharedParameters& shared) {
    for (const MixerEntry& entry : registry())
      if (v.name == entry.name) return entry.make({v.dim, v.heads, length, v.site, options, shared});
    throw InternalError("no mixer {}", v.name);
  }
};

/// Tokens [begin, end) of x [B,T,D].
inline Tensor tokens_of(const Tensor& x, Index begin, Index end) {
  const Index batch = x.extent(0), length = x.extent(1), dim = x.extent(2);
  Tensor part({batch, end - begin, dim});
  for (Index b = 0; b < batch; ++b)
    std::copy_n(x.data() + (b * length + begin) * dim, (end - begin) * dim, part.data() + b * (end - begin) * dim);
  return part;
}

/// Lane `lane` of x [B,T,D].
inline Tensor lane_of(const Tensor& x, Index lane) {
  const Index size = x.count() / x.extent(0);
  Tensor part({1, x.extent(1), x.extent(2)});
  std::copy_n(x.data() + lane * size, size, part.data());
  return part;
}

/// x [B,n,..] with room for `rows` along the second axis, zero where x has none.
inline Tensor with_room(const Tensor& x, Index rows) {
  if (x.shape().rank() < 2 || x.extent(1) == rows) return x;
  Shape shape = x.shape();
  shape[1] = rows;
  Tensor y = Tensor::zeros(shape);
  const Index size = y.count() / std::max<Index>(1, y.extent(0));
  const Index old = x.count() / std::max<Index>(1, x.extent(0));
  for (Index b = 0; b < x.extent(0); ++b) std::copy_n(x.data() + b * old, old, y.data() + b * size);
  return y;
}

/// The worst relative error over the leaves; infinite where integers differ. A growing cache has room for its longest
/// lane, so that of fewer lanes may have less: what it lacks counts as zero.
inline double state_error(const State& a, const State& b) {
  if (a.leaves().size() != b.leaves().size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < a.leaves().size(); ++i) {
    const StateLeaf &x = a.leaves()[i], &y = b.leaves()[i];
    if (x.is_integer() != y.is_integer() || x.integers != y.integers) return INFINITY;
    if (x.is_integer()) continue;
    const Index rows = x.value.shape().rank() < 2 ? 0 : std::max(x.value.extent(1), y.value.extent(1));
    worst = std::max(worst, relative_error(with_room(x.value.value(), rows), with_room(y.value.value(), rows)));
  }
  return worst;
}

}  // namespace quipu::inline QUIPU_REAL_NS
