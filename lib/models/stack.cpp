#include "models/stack.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "grad/checkpoint.h"
#include "grad/ops_embed.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_position.h"
#include "mixers/registry.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr std::uint64_t kEmbeddingSite = rng_site("embedding dropout");
constexpr std::uint64_t kLayerSite = rng_site("layer dropout");

/// The options that concern `mixer`: its own ("gsa.slots") and those for all ("slots"), without the prefix.
std::map<std::string, std::string> options_of(const ModelConfig& config, const std::string& mixer) {
  std::map<std::string, std::string> own;
  for (const auto& [key, value] : config.options)
    if (key.find('.') == std::string::npos) own[key] = value;
  for (const auto& [key, value] : config.options)
    if (key.starts_with(mixer + ".")) own[key.substr(mixer.size() + 1)] = value;
  return own;
}

/// Builds mixers and keeps account of which options they read.
class MixerBuilder {
 public:
  MixerBuilder(const ModelConfig& config, SharedParameters& shared) : config_(config), shared_(shared) {}

  std::unique_ptr<Mixer> make(const std::string& name, bool channel, Index layer) {
    Options options(options_of(config_, name));
    const Site site{layer, config_.layers};
    const Index length = config_.length + 2 * config_.memory_tokens;
    auto mixer =
        find_mixer(name, channel).make({config_.dim, channel ? 0 : config_.heads, length, site, options, shared_});
    for (const auto& [key, value] : options.resolved()) {
      resolved_[name + "." + key] = value;
      used_.insert({key, name + "." + key});
    }
    if (layer == 0 || known_.insert(name).second)
      notes_.insert(notes_.end(), options.notes().begin(), options.notes().end());
    known_.insert(name);
    return mixer;
  }

  /// The options in force; throws UsageError for one that no mixer of the model read.
  std::map<std::string, std::string> resolved() const {
    for (const auto& [key, value] : config_.options)
      if (!used_.contains(key)) {
        std::string all;
        for (const auto& [name, unused] : resolved_) all += (all.empty() ? "" : ", ") + name;
        throw UsageError("--set {}={}: no mixer of this model has such an option; there are {}", key, value,
                         all.empty() ? "none" : all);
      }
    return resolved_;
  }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  const ModelConfig& config_;
  SharedParameters& shared_;
  std::map<std::string, std::string> resolved_;
  std::set<std::string> used_, known_;
  std::vector<std::string> notes_;
};

/// What the configuration leaves open, as suits the mixer of the first layer.
void fill_in(ModelConfig& config, const BlockDefaults& suits) {
  const auto choose = [](std::string& value, const std::string& otherwise) {
    if (value.empty()) value = otherwise;
  };
  choose(config.channel_mixer, suits.channel_mixer);
  if (config.channel_mixer == suits.channel_mixer)
    for (const auto& [key, value] : suits.channel_options)
      if (!config.options.contains(key)) config.options.emplace(suits.channel_mixer + "." + key, value);
  choose(config.norm, suits.norm);
  choose(config.norm_place, suits.post_norm ? "post" : "pre");
  choose(config.final_norm, suits.final_norm && config.norm_place == "pre" ? config.norm : "none");
  choose(config.positions, suits.positions);
  choose(config.head, suits.tied_head ? "tied" : "untied");
  choose(config.head_bias, suits.head_bias ? "bias" : "none");
  choose(config.embedding_norm, suits.embedding_norm ? config.norm : "none");
  if (config.embedding_scale == 0)
    config.embedding_scale =
        suits.scaled_embedding || config.positions == "sinusoidal" ? std::sqrt(static_cast<double>(config.dim)) : 1;
}

}  // namespace

Stack::Stack(ModelConfig& config, SharedParameters& shared) : dim_(config.dim) {
  MixerBuilder builder(config, shared);
  for (Index layer = 0; const std::string& name : expand_pattern(config.mixer, config.layers)) {
    auto mixer = builder.make(name, false, layer);
    if (layer == 0) fill_in(config, suits_ = mixer->block());
    std::unique_ptr<Mixer> channel;
    if (config.channel_mixer != "none") channel = builder.make(config.channel_mixer, true, layer);
    const BlockNorm norm{config.norm, config.norm_eps, config.norm_place == "post"};
    blocks_.emplace_back(std::move(mixer), std::move(channel), norm, config.dim, layer++);
  }
  config.options = builder.resolved();
  notes_ = builder.notes();
  position_kind_ = config.positions;
  final_norm_ = config.final_norm;
  const Index rows = config.length + 2 * config.memory_tokens;
  if (position_kind_ == "learned") positions_ = Parameter({rows, dim_}, normal(0.02));
  if (has_final_norm()) norm_ = Norm(final_norm_, dim_, config.norm_eps);
}

void Stack::visit(const ParameterVisitor& visitor) {
  if (position_kind_ == "learned") visitor("positions.weight", positions_);
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].visit(visitor.in(fmt::format("layers.{}", i)));
  if (has_final_norm()) norm_.visit(visitor, "norm");
}

ModelState Stack::initial_state(Index lanes) const {
  ModelState state;
  for (const Block& block : blocks_) {
    state.layers.push_back(block.mixer().initial_state(lanes));
    state.layers.push_back(block.channel() != nullptr ? block.channel()->initial_state(lanes) : State{});
  }
  state.position.assign(static_cast<std::size_t>(lanes), 0);
  return state;
}

void Stack::reset(ModelState& state, Index lane) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].mixer().reset(state.layers[2 * i], lane);
    if (blocks_[i].channel() != nullptr) blocks_[i].channel()->reset(state.layers[2 * i + 1], lane);
  }
  state.position[static_cast<std::size_t>(lane)] = 0;
}

Index Stack::state_bytes(Index length) const {
  Index bytes = static_cast<Index>(sizeof(std::int64_t));
  for (const Block& block : blocks_) {
    bytes += block.mixer().state_bytes(length);
    if (block.channel() != nullptr) bytes += block.channel()->state_bytes(length);
  }
  return bytes;
}

Index Stack::spare_bytes(const ModelState& state) const {
  Index bytes = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) bytes += blocks_[i].mixer().spare_bytes(state.layers[2 * i]);
  return bytes;
}

double Stack::mixing_cost(Index length) const {
  double cost = 0;
  for (const Block& block : blocks_)
    cost += block.mixer().mixing_cost(length) + (block.channel() ? block.channel()->mixing_cost(length) : 0);
  return cost;
}

Var Stack::add_positions_to(Tape& tape, const Var& rows, const Layout& layout, ModelState& state) const {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(layout.batch * layout.length), 0);
  for (Index b = 0; b < layout.batch; ++b) {
    std::int64_t& at = state.position[static_cast<std::size_t>(b)];
    for (const Span& span : layout.spans(b)) {
      if (span.fresh) at = 0;
      for (Index t = span.begin; t < span.end; ++t) positions[static_cast<std::size_t>(b * layout.length + t)] = at++;
    }
  }
  if (position_kind_ == "learned") return add_positions(tape, rows, positions_.var(), positions);
  if (position_kind_ == "sinusoidal")
    return add(tape, rows, Var(sinusoids(SinusoidLayout::interleaved, positions, dim_).reshaped(rows.shape())));
  return rows;
}

Var Stack::run_line(Tape& tape, const Block& block, Index line, const Var& x, const Context& context, State& state,
                    Carry& carry) const {
  if (!checkpoint_activations_ || !tape.recording()) return block.forward(tape, line, x, context, state);

  // Without a state no token depends on another one. Dropout does: it goes by a row's place.
  if (state.leaves().empty() && !(context.training && context.dropout > 0))
    return checkpoint_rows(tape, x, [&block, line, training = context.training](Tape& inner, const Var& rows) {
      const Layout layout = Layout::plain(1, rows.extent(1));
      State none;
      return block.forward(inner, line, rows, {.layout = layout, .training = training}, none);
    });

  std::vector<Var> inputs{x, carry.first_values};
  for (const StateLeaf& leaf : state.leaves()) inputs.push_back(leaf.value);
  const auto put = [](const std::vector<Var>& from, State& to) {
    std::size_t i = 2;
    for (StateLeaf& leaf : to.leaves()) leaf.value = from[i++];
  };
  auto after = std::make_shared<State>(state);  // integer leaves leave this way
  const std::vector<Var> outputs =
      checkpoint(tape, inputs,
                 // The caller's layout may be gone by the backward pass.
                 [&block, line, context, layout = std::make_shared<const Layout>(context.layout), before = state, after,
                  put](Tape& inner, const std::vector<Var>& in) {
                   State inside_state = before;
                   put(in, inside_state);
                   Carry handed{.first_values = in[1]};
                   const Context inside{.layout = *layout,
                                        .training = context.training,
                                        .keep_state = context.keep_state,
                                        .seed = context.seed,
                                        .step = context.step,
                                        .dropout = context.dropout,
                                        .carry = &handed};
                   std::vector<Var> out{block.forward(inner, line, in[0], inside, inside_state)};
                   out.push_back(handed.first_values);
                   for (const StateLeaf& leaf : inside_state.leaves()) out.push_back(leaf.value);
                   *after = inside_state.detached();
                   return out;
                 });
  state = *after;
  put(outputs, state);
  carry.first_values = outputs[1];
  return outputs[0];
}

Var Stack::forward(Tape& tape, const Var& rows, const Context& context, ModelState& state) const {
  Var x = add_positions_to(tape, rows, context.layout, state);
  if (context.training && context.dropout > 0)
    x = dropout(tape, x, context.dropout, Rng(context.seed, context.step, kEmbeddingSite));
  Carry carry;
  Context inside = context;
  inside.carry = &carry;
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    if (context.training && layer_dropout_ > 0 &&
        Rng(context.seed, context.step, kLayerSite).uniform(layer) < layer_dropout_)
      continue;
    for (Index line = 0; line < blocks_[layer].lines(); ++line)
      x = run_line(tape, blocks_[layer], line, x, inside, state.layers[2 * layer + static_cast<std::size_t>(line)],
                   carry);
  }
  return has_final_norm() ? norm_(tape, x) : x;
}

void Stack::step(Matrix rows, Matrix hidden, ModelState& state, Scratch& scratch) const {
  const Layout layout = Layout::plain(rows.rows, 1);
  Carry carry;
  const Context context{.layout = layout, .scratch = &scratch, .carry = &carry};
  const Matrix angles = scratch.take(1, dim_);
  for (Index b = 0; b < rows.rows; ++b) {
    std::int64_t& at = state.position[static_cast<std::size_t>(b)];
    if (position_kind_ == "learned") add_position_into(rows.row(b), at, positions_.value());
    if (position_kind_ == "sinusoidal") {
      sinusoids_into(SinusoidLayout::interleaved, {&at, 1}, angles);
      kernels::add_into(rows.row(b), angles.data, dim_);
    }
    ++at;
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    blocks_[i].step(rows, context, state.layers[2 * i], state.layers[2 * i + 1]);
  if (has_final_norm())
    norm_.step(hidden, rows);
  else
    std::copy_n(rows.data, rows.rows * rows.cols, hidden.data);
}

}  // namespace quipu::inline QUIPU_REAL_NS
