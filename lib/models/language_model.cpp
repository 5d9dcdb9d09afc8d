#include "models/language_model.h"

#include <algorithm>

#include "grad/ops_embed.h"
#include "grad/ops_linear.h"
#include "grad/ops_pointwise.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

void check_sizes(const ModelConfig& c) {
  if (c.vocab < 1) throw UsageError("model: a vocabulary of {} tokens; at least 1 is needed", c.vocab);
  if (c.dim < 1 || c.layers < 1 || c.length < 1)
    throw UsageError("model: width {}, {} layers, length {}; each must be at least 1", c.dim, c.layers, c.length);
  if (c.memory_tokens < 0) throw UsageError("model: {} memory tokens; at least 0 is needed", c.memory_tokens);
}

void check_choices(const ModelConfig& c) {
  for (const auto& [key, value, choices] :
       {std::tuple{"--positions", c.positions, std::vector<std::string>{"none", "learned", "sinusoidal"}},
        {"--head", c.head, {"tied", "untied"}},
        {"--head-bias", c.head_bias, {"none", "bias"}},
        {"--norm-place", c.norm_place, {"pre", "post"}}})
    if (std::find(choices.begin(), choices.end(), value) == choices.end())
      throw UsageError("{} {}: is unknown; there are {}", key, value, fmt::join(choices, ", "));
  if (c.positions == "sinusoidal" && c.dim % 2 != 0)
    throw UsageError("--positions sinusoidal: needs an even width, not {} (--dim)", c.dim);
}

/// Whether rows are picked of a parameter, so that no token is multiplied with it.
bool is_table(const std::string& name) {
  return name == "embedding.weight" || name == "positions.weight" || name == "memory.weight";
}

}  // namespace

LanguageModel::LanguageModel(const ModelConfig& config, bool gradients, const FormatChoice& format)
    : config_((check_sizes(config), config)), stack_(config_, shared_) {
  check_choices(config_);
  const Shape table{config_.vocab, config_.dim};
  const auto start = [&](const auto& published) {
    return published ? published(config_.vocab, config_.dim) : normal(0.02);
  };
  embedding_ = Parameter(table, start(stack_.suits().embedding));
  if (config_.head == "untied") head_ = matrix(config_.vocab, config_.dim, start(stack_.suits().head));
  if (has_head_bias()) head_bias_ = undecayed({config_.vocab}, constant(0));
  if (has_embedding_norm()) embedding_norm_ = Norm(config_.embedding_norm, config_.dim, config_.norm_eps);
  if (config_.memory_tokens > 0) memory_.emplace(stack_, config_);
  parameters_ =
      std::make_unique<Parameters>([this](const ParameterVisitor& visitor) { visit(visitor); }, gradients, format);
}

void LanguageModel::visit(const ParameterVisitor& visitor) {
  visitor("embedding.weight", embedding_);
  if (has_embedding_norm()) embedding_norm_.visit(visitor, "embedding_norm");
  if (memory_) memory_->visit(visitor);
  shared_.visit(visitor.in("shared"));
  stack_.visit(visitor);
  if (config_.head == "untied") visitor("head.weight", head_);
  if (has_head_bias()) visitor("head.bias", head_bias_);
}

ModelState LanguageModel::initial_state(Index lanes) const {
  return memory_ ? memory_->initial_state(lanes) : stack_.initial_state(lanes);
}

void LanguageModel::reset(ModelState& state, Index lane) const {
  memory_ ? memory_->reset(state, lane) : stack_.reset(state, lane);
}

Index LanguageModel::state_bytes(Index length) const {
  return memory_ ? memory_->state_bytes(length) : stack_.state_bytes(length);
}

Memory LanguageModel::memory() const {
  if (memory_ && config_.memory_state == "fresh") return Memory::fixed;
  if (config_.positions == "learned" && !memory_) return Memory::fixed_length;
  Memory worst = Memory::fixed;
  for (const Block& block : stack_.blocks()) worst = std::max(worst, block.mixer().memory());
  return worst;
}

Index LanguageModel::matrix_parameters() const {
  Index count = 0;
  for (const auto* entries : {&parameters_->trainable(), &parameters_->packed()})
    for (const auto& entry : *entries)
      if (const ParameterTraits& traits = entry.parameter->traits();
          traits.trainable && !traits.by_position && entry.parameter->shape().rank() >= 2 && !is_table(entry.name))
        count += entry.parameter->shape().count();
  return count + (config_.head == "tied" ? config_.vocab * config_.dim : 0);
}

double LanguageModel::forward_flops(Index length) const {
  const double head = static_cast<double>(config_.vocab * config_.dim);
  const double rows = static_cast<double>(matrix_parameters()) - head;
  if (!memory_) return 2 * (rows + stack_.mixing_cost(length) + head);
  // The stack reads the memory too, and no mixer more than a segment.
  const auto segment = static_cast<double>(SegmentMemory::rows(config_)) / static_cast<double>(config_.length);
  return 2 * (segment * (rows + stack_.mixing_cost(SegmentMemory::rows(config_))) + head);
}

Var LanguageModel::embed(Tape& tape, std::span<const std::int32_t> tokens, const Layout& layout) const {
  Var x = embedding(tape, tokens, embedding_.var(), {layout.batch, layout.length});
  if (config_.embedding_scale != 1) x = scale(tape, x, static_cast<Real>(config_.embedding_scale));
  return has_embedding_norm() ? embedding_norm_(tape, x) : x;
}

Var LanguageModel::forward(Tape& tape, std::span<const std::int32_t> tokens, const Context& context,
                           ModelState& state) const {
  const Var x = embed(tape, tokens, context.layout);
  return memory_ ? memory_->forward(tape, x, context, state) : stack_.forward(tape, x, context, state);
}

LossOutput LanguageModel::loss(Tape& tape, const Var& hidden, std::span<const std::int32_t> targets,
                               const LossOptions& options) const {
  const Var bias = has_head_bias() ? head_bias_.var() : Var();
  if (head().is_packed()) return projected_cross_entropy(tape, hidden, head().weight(), targets, options, bias);
  return projected_cross_entropy(tape, hidden, head().var(), bias, targets, options);
}

void LanguageModel::logits_into(Matrix logits, Matrix hidden) const {
  const OpScope op_scope("head");
  multiply_weight(logits, hidden, head().weight(), has_head_bias() ? head_bias_.value().data() : nullptr);
}

void LanguageModel::step(std::span<const std::int32_t> tokens, ModelState& state, Scratch& scratch,
                         Matrix logits) const {
  const auto lanes = static_cast<Index>(tokens.size());
  scratch.clear();
  const Matrix x = scratch.take(lanes, config_.dim), hidden = scratch.take(lanes, config_.dim);
  for (Index b = 0; b < lanes; ++b) {
    embed_into(x.row(b), tokens[static_cast<std::size_t>(b)], embedding_.value());
    kernels::scale(x.row(b), static_cast<Real>(config_.embedding_scale), x.row(b), x.cols);
    const Matrix row = x.slice(b, b + 1);
    if (has_embedding_norm()) embedding_norm_.step(row, row);
  }
  memory_ ? memory_->step(x, hidden, state, scratch) : stack_.step(x, hidden, state, scratch);
  logits_into(logits, hidden);
}

}  // namespace quipu::inline QUIPU_REAL_NS
