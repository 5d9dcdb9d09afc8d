#include "models/language_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "grad/checkpoint.h"
#include "grad/ops_embed.h"
#include "grad/ops_linear.h"
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
    auto mixer = find_mixer(name, channel)
                     .make({config_.dim, channel ? 0 : config_.heads, config_.length, site, options, shared_});
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

void check_config(const ModelConfig& c) {
  if (c.vocab < 1) throw UsageError("model: a vocabulary of {} tokens; at least 1 is needed", c.vocab);
  if (c.dim < 1 || c.layers < 1 || c.length < 1)
    throw UsageError("model: width {}, {} layers, length {}; each must be at least 1", c.dim, c.layers, c.length);
  for (const auto& [key, value, choices] :
       {std::tuple{"--positions", c.positions, std::vector<std::string>{"none", "learned", "sinusoidal"}},
        {"--head", c.head, {"tied", "untied"}}})
    if (std::find(choices.begin(), choices.end(), value) == choices.end())
      throw UsageError("{} {}: is unknown; there are {}", key, value, fmt::join(choices, ", "));
  if (c.positions == "sinusoidal" && c.dim % 2 != 0)
    throw UsageError("--positions sinusoidal: needs an even width, not {} (--dim)", c.dim);
}

}  // namespace

LanguageModel::LanguageModel(const ModelConfig& config, bool gradients, const FormatChoice& format) : config_(config) {
  build_blocks();
  check_config(config_);
  if (config_.positions == "learned") positions_ = Parameter({config_.length, config_.dim}, normal(0.02));
  const Shape table{config_.vocab, config_.dim};
  const BlockDefaults suits = blocks_.front().mixer().block();
  const auto start = [&](const auto& published) {
    return published ? published(config_.vocab, config_.dim) : normal(0.02);
  };
  embedding_ = Parameter(table, start(suits.embedding));
  if (config_.head == "untied") head_ = matrix(config_.vocab, config_.dim, start(suits.head));
  if (has_embedding_norm()) embedding_norm_ = Norm(config_.embedding_norm, config_.dim, config_.norm_eps);
  norm_ = Norm(config_.norm, config_.dim, config_.norm_eps);
  parameters_ = std::make_unique<Parameters>(
      [this](const ParameterVisitor& visitor) {
        visitor("embedding.weight", embedding_);
        if (config_.positions == "learned") visitor("positions.weight", positions_);
        if (has_embedding_norm()) embedding_norm_.visit(visitor, "embedding_norm");
        shared_.visit(visitor.in("shared"));
        for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].visit(visitor.in(fmt::format("layers.{}", i)));
        norm_.visit(visitor, "norm");
        if (config_.head == "untied") visitor("head.weight", head_);
      },
      gradients, format);
}

void LanguageModel::build_blocks() {
  if (config_.dim < 1 || config_.layers < 1) check_config(config_);
  MixerBuilder builder(config_, shared_);
  for (Index layer = 0; const std::string& name : expand_pattern(config_.mixer, config_.layers)) {
    auto mixer = builder.make(name, false, layer);
    if (layer == 0) {
      const BlockDefaults suits = mixer->block();
      if (config_.channel_mixer.empty()) config_.channel_mixer = suits.channel_mixer;
      if (config_.channel_mixer == suits.channel_mixer)
        for (const auto& [key, value] : suits.channel_options)
          if (!config_.options.contains(key)) config_.options.emplace(suits.channel_mixer + "." + key, value);
      if (config_.norm.empty()) config_.norm = suits.norm;
      if (config_.positions.empty()) config_.positions = suits.positions;
      if (config_.head.empty()) config_.head = suits.tied_head ? "tied" : "untied";
      if (config_.embedding_norm.empty()) config_.embedding_norm = suits.embedding_norm ? config_.norm : "none";
    }
    std::unique_ptr<Mixer> channel;
    if (config_.channel_mixer != "none") channel = builder.make(config_.channel_mixer, true, layer);
    blocks_.emplace_back(std::move(mixer), std::move(channel), config_.norm, config_.dim, config_.norm_eps, layer++);
  }
  if (config_.embedding_scale == 0)
    config_.embedding_scale = config_.positions == "sinusoidal" ? std::sqrt(static_cast<double>(config_.dim)) : 1;
  config_.options = builder.resolved();
  notes_ = builder.notes();
}

ModelState LanguageModel::initial_state(Index lanes) const {
  ModelState state;
  for (const Block& block : blocks_) {
    state.layers.push_back(block.mixer().initial_state(lanes));
    state.layers.push_back(block.channel() != nullptr ? block.channel()->initial_state(lanes) : State{});
  }
  state.position.assign(static_cast<std::size_t>(lanes), 0);
  return state;
}

void LanguageModel::reset(ModelState& state, Index lane) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].mixer().reset(state.layers[2 * i], lane);
    if (blocks_[i].channel() != nullptr) blocks_[i].channel()->reset(state.layers[2 * i + 1], lane);
  }
  state.position[static_cast<std::size_t>(lane)] = 0;
}

Index LanguageModel::state_bytes(Index length) const {
  Index bytes = static_cast<Index>(sizeof(std::int64_t));
  for (const Block& block : blocks_) {
    bytes += block.mixer().state_bytes(length);
    if (block.channel() != nullptr) bytes += block.channel()->state_bytes(length);
  }
  return bytes;
}

Index LanguageModel::matrix_parameters() const {
  Index count = 0;
  for (const auto* entries : {&parameters_->trainable(), &parameters_->packed()})
    for (const auto& entry : *entries)
      if (entry.parameter->traits().trainable && entry.parameter->shape().rank() >= 2 && entry.name != "embedding.weight" && entry.name != "positions.weight")
        count += entry.parameter->shape().count();
  return count + (config_.head == "tied" ? config_.vocab * config_.dim : 0);
}

double LanguageModel::forward_flops(Index length) const {
  double flops = 2 * static_cast<double>(matrix_parameters());
  for (const Block& block : blocks_)
    flops += 2 * (block.mixer().mixing_cost(length) + (block.channel() ? block.channel()->mixing_cost(length) : 0));
  return flops;
}

Var LanguageModel::embed(Tape& tape, std::span<const std::int32_t> tokens, const Context& context,
                         ModelState& state) const {
  const Layout& layout = context.layout;
  Var x = embedding(tape, tokens, embedding_.var(), {layout.batch, layout.length});
  if (config_.embedding_scale != 1) x = scale(tape, x, static_cast<Real>(config_.embedding_scale));
  if (has_embedding_norm()) x = embedding_norm_(tape, x);
  std::vector<std::int64_t> positions(tokens.size(), 0);
  for (Index b = 0; b < layout.batch; ++b) {
    std::int64_t& at = state.position[static_cast<std::size_t>(b)];
    for (const Span& span : layout.spans(b)) {
      if (span.fresh) at = 0;
      for (Index t = span.begin; t < span.end; ++t) positions[static_cast<std::size_t>(b * layout.length + t)] = at++;
    }
  }
  if (config_.positions == "learned") x = add_positions(tape, x, positions_.var(), positions);
  if (config_.positions == "sinusoidal")
    x = add(tape, x, Var(sinusoids(SinusoidLayout::interleaved, positions, config_.dim).reshaped(x.shape())));
  if (context.training && context.dropout > 0)
    x = dropout(tape, x, context.dropout, Rng(context.seed, context.step, kEmbeddingSite));
  return x;
}

Var LanguageModel::run_block(Tape& tape, std::size_t layer, const Var& x, const Context& context, ModelState& state,
                             Carry& carry) const {
  const Block& block = blocks_[layer];
  State &mixer = state.layers[2 * layer], &channel = state.layers[2 * layer + 1];
  if (!checkpoint_activations_ || !tape.recording()) return block.forward(tape, x, context, mixer, channel);

  std::vector<Var> inputs{x, carry.first_values};
  for (const State* s : {&mixer, &channel})
    for (const StateLeaf& leaf : s->leaves()) inputs.push_back(leaf.value);
  const auto put = [](const std::vector<Var>& from, State& first, State& second) {
    std::size_t i = 2;
    for (State* s : {&first, &second})
      for (StateLeaf& leaf : s->leaves()) leaf.value = from[i++];
  };
  auto after = std::make_shared<std::pair<State, State>>(mixer, channel);  // integer leaves leave this way
  const std::vector<Var> outputs = checkpoint(
      tape, inputs,
      [&block, context, before = std::pair(mixer, channel), after, put](Tape& inner, const std::vector<Var>& in) {
        State first = before.first, second = before.second;
        put(in, first, second);
        Carry handed{.first_values = in[1]};
        Context inside = context;
        inside.carry = &handed;
        std::vector<Var> out{block.forward(inner, in[0], inside, first, second)};
        out.push_back(handed.first_values);
        for (const State* s : {&first, &second})
          for (const StateLeaf& leaf : s->leaves()) out.push_back(leaf.value);
        *after = {first.detached(), second.detached()};
        return out;
      });
  mixer = after->first, channel = after->second;
  put(outputs, mixer, channel);
  carry.first_values = outputs[1];
  return outputs[0];
}

Var LanguageModel::forward(Tape& tape, std::span<const std::int32_t> tokens, const Context& context,
                           ModelState& state) const {
  Var x = embed(tape, tokens, context, state);
  Carry carry;
  Context inside = context;
  inside.carry = &carry;
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    if (context.training && layer_dropout_ > 0 &&
        Rng(context.seed, context.step, kLayerSite).uniform(layer) < layer_dropout_)
      continue;
    x = run_block(tape, layer, x, inside, state, carry);
  }
  return norm_(tape, x);
}

LossOutput LanguageModel::loss(Tape& tape, const Var& hidden, std::span<const std::int32_t> targets,
                               const LossOptions& options) const {
  if (head().is_packed()) return projected_cross_entropy(tape, hidden, head().weight(), targets, options);
  return projected_cross_entropy(tape, hidden, head().var(), {}, targets, options);
}

void LanguageModel::logits_into(Matrix logits, Matrix hidden) const { linear_into(logits, hidden, head().weight()); }

void LanguageModel::step(std::span<const std::int32_t> tokens, ModelState& state, Scratch& scratch,
                         Matrix logits) const {
  const auto lanes = static_cast<Index>(tokens.size());
  scratch.clear();
  const Layout layout = Layout::plain(lanes, 1);
  Carry carry;
  const Context context{.layout = layout, .scratch = &scratch, .carry = &carry};
  const Matrix x = scratch.take(lanes, config_.dim);
  for (Index b = 0; b < lanes; ++b) {
    std::int64_t& at = state.position[static_cast<std::size_t>(b)];
    embed_into(x.row(b), tokens[static_cast<std::size_t>(b)], embedding_.value());
    kernels::scale(x.row(b), static_cast<Real>(config_.embedding_scale), x.row(b), x.cols);
    const Matrix row = x.slice(b, b + 1);
    if (has_embedding_norm()) embedding_norm_.step(row, row);
    if (config_.positions == "learned") add_position_into(x.row(b), at, positions_.value());
    if (config_.positions == "sinusoidal") {
      const Matrix angles = scratch.take(1, config_.dim);
      sinusoids_into(SinusoidLayout::interleaved, {&at, 1}, angles);
      kernels::add_into(x.row(b), angles.data, x.cols);
    }
    ++at;
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    blocks_[i].step(x, context, state.layers[2 * i], state.layers[2 * i + 1]);
  const Matrix normed = scratch.take(lanes, config_.dim);
  norm_.step(normed, x);
  logits_into(logits, normed);
}

}  // namespace quipu::inline QUIPU_REAL_NS
