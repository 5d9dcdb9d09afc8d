#include <omp.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "tensor/blas.h"
#include "train/agreement.h"
#include "train/trainer.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr const char* kPosition = "position";

std::string integer_name(std::size_t layer, const StateLeaf& leaf) { return fmt::format("{}/{}", layer, leaf.name); }

/// Settings whose change leaves a run the same run, only longer.
bool is_extension(const std::string& option) { return option == "--steps" || option == "--warmup"; }

std::map<std::string, std::vector<std::int64_t>> carried_integers(const ModelState& state) {
  std::map<std::string, std::vector<std::int64_t>> integers{{kPosition, state.position}};
  for (std::size_t layer = 0; layer < state.layers.size(); ++layer)
    for (const StateLeaf& leaf : state.layers[layer].leaves())
      if (leaf.is_integer()) integers[integer_name(layer, leaf)] = leaf.integers;
  return integers;
}

void put_integers(const std::map<std::string, std::vector<std::int64_t>>& integers, const std::string& file,
                  ModelState& state) {
  const auto find = [&](const std::string& name, std::size_t lanes) -> const std::vector<std::int64_t>& {
    const auto found = integers.find(name);
    if (found == integers.end() || found->second.size() != lanes)
      throw InputError("{}: lacks the carried state {} of {} lanes; start afresh with --resume never", file, name,
                       lanes);
    return found->second;
  };
  state.position = find(kPosition, state.position.size());
  for (std::size_t layer = 0; layer < state.layers.size(); ++layer)
    for (StateLeaf& leaf : state.layers[layer].leaves())
      if (leaf.is_integer()) leaf.integers = find(integer_name(layer, leaf), leaf.integers.size());
}

}  // namespace

Trainer::Trainer(const Dataset& data, TrainOptions options)
    : data_(data), options_(std::move(options)), train_(data.split("train")), files_(options_.output, options_.keep) {
  blas::require_sound();
  set_linear_precision(options_.precision);
  if (data_.has_split("valid")) valid_ = &data_.split("valid");
  if (options_.stop_below_nats && valid_ == nullptr)
    throw UsageError("--stop-below: {} has no validation split whose loss could get below {}; leave it out",
                     data_.name(), *options_.stop_below_nats);
  if (train_.is_scored()) fit_to_rows();
  complete(options_);
  std::vector<Index> lengths{options_.segments};
  if (!options_.curriculum.empty()) lengths = options_.curriculum;
  for (const Index segments : lengths)
    batchers_.emplace_back(
        train_, BatchOptions{options_.batch, segments * options_.length, options_.carry_state, options_.seed},
        data_.name());
  options_.model.vocab = data_.vocab();
  model_ = std::make_unique<LanguageModel>(options_.model, true);
  const bool learned = model_->config().positions == "learned" && model_->memory() == Memory::fixed_length;
  if (options_.carry_state && learned)
    throw UsageError(
        "--carry-state: the stream goes on past the {} learned positions (--seq-len); use --positions "
        "none or sinusoidal",
        options_.length);
  if (options_.carry_state && model_->memory() == Memory::growing)
    log_warning("--carry-state: this model's memory grows with every token of a document; bound it with --set window");
  optimizer_ = std::make_unique<Optimizer>(options_.optimizer, optimizer_groups(model_->parameters()));
  if (options_.carry_state) carried_ = model_->initial_state(options_.batch);
  if (files_.is_file()) lock_.emplace(options_.output);

  if (options_.resume == "auto") {
    std::vector<std::string> candidates = files_.kept();
    if (files_.is_file() && std::filesystem::exists(options_.output))
      candidates.insert(candidates.begin(), options_.output);
    else
      candidates.clear();
    resume_from_first(candidates);
  } else if (options_.resume != "never") {
    resume_from(options_.resume, false);
  }
  if (resumed_from_.empty()) start_afresh();
}

void Trainer::fit_to_rows() {
  const Index row = train_.length();
  if (!options_.curriculum.empty())
    throw UsageError(
        "--curriculum: {} holds rows of {} tokens, whose segments do not grow; train on shorter rows first "
        "and start from that model with --init",
        data_.name(), row);
  options_.length = options_.length == 0 ? row : std::min(options_.length, row);
  options_.segments = (row + options_.length - 1) / options_.length;
}

const Batcher& Trainer::batcher_at(Index step) const {
  const Index segments = options_.segments_at(step);
  const auto stage = std::ranges::find(options_.curriculum, segments);
  return stage == options_.curriculum.end() ? batchers_.front()
                                            : batchers_[static_cast<std::size_t>(stage - options_.curriculum.begin())];
}

void Trainer::resume_from_first(const std::vector<std::string>& candidates) {
  for (std::size_t i = 0; i < candidates.size() && resumed_from_.empty(); ++i) {
    if (i + 1 == candidates.size()) return resume_from(candidates[i], true);
    try {
      resume_from(candidates[i], true);
    } catch (const InputError& error) {  // damaged: an older one may be whole
      log_warning("{}; trying {}", error.what(), candidates[i + 1]);
    }
  }
}

void Trainer::start_afresh() {
  history_ = {{options_.command}, {fmt::format("{} {}", data_.digest(), data_.name())}};
  progress_ = {};
  optimizer_->set_steps_taken(0);
  if (options_.init.empty()) return model_->parameters().initialise(options_.seed);
  const CheckpointFile file(options_.init);
  if (file.facts().tokenizer != data_.tokenizer())
    log_warning("--init {}: was trained with another tokenizer than {} has", options_.init, data_.name());
  if (const std::string formats = file.formats_text(); formats != format_name(NumberFormat::f32))
    log_note("--init {}: is in {}; its matrices are expanded to f32, which is what is trained", options_.init, formats);
  read_parameters(file, model_->parameters());
  history_.commands.insert(history_.commands.begin(), file.facts().provenance.commands.begin(),
                           file.facts().provenance.commands.end());
}

void Trainer::resume_from(const std::string& path, bool exactly) {
  const CheckpointFile file(path);
  const TrainProgress saved = progress_from_json(file.facts().progress, file.name());
  const bool same_reading = check_agreement(file, saved, exactly);
  read_parameters(file, model_->parameters());
  read_optimizer(file, model_->parameters(), *optimizer_);
  if (options_.carry_state && same_reading) {
    read_carried_state(file, carried_);
    put_integers(saved.carried_integers, file.name(), carried_);
  }
  note_environment(saved);
  progress_ = saved;
  history_ = file.facts().provenance;
  if (history_.commands.empty() || history_.commands.back() != options_.command)
    history_.commands.push_back(options_.command);
  resumed_from_ = path;
}

bool Trainer::check_agreement(const CheckpointFile& file, const TrainProgress& saved, bool exactly) const {
  const std::string way_out = exactly ? fmt::format(
                                            "give the options that it was trained with, another output, or "
                                            "--resume never to overwrite it")
                                      : "give the options that it was trained with";
  const ModelConfig stored = config_from_json(file.facts().config);
  for (const Difference& d : differences(model_->config(), stored))
    throw UsageError("{}: is a model with {} {}, this run has {}; {}", file.name(), d.option, d.there, d.here, way_out);
  if (file.facts().tokenizer != data_.tokenizer())
    throw UsageError("{}: was trained with another tokenizer than {} has; {}", file.name(), data_.name(), way_out);
  bool same_reading = true;
  for (const Difference& d : differences(settings_of(options_, data_.digest()), saved.settings)) {
    if (exactly && !is_extension(d.option))
      throw UsageError("{}: was trained with {} {}, this run has {}; {}", file.name(), d.option, d.there, d.here,
                       way_out);
    log_note("{}: goes on with {} {} where it had {}", file.name(), d.option, d.here, d.there);
    if (d.option == "data" || d.option == "--batch" || d.option == "--carry-state") same_reading = false;
  }
  return same_reading;
}

void Trainer::note_environment(const TrainProgress& saved) const {
  const int threads = omp_get_max_threads();
  const std::string products = blas::product_names();
  if (saved.threads != threads)
    log_warning("goes on with {} threads where it had {}: results will differ in their last digits", threads,
                saved.threads);
  if (!saved.products.empty() && saved.products != products)
    log_warning("goes on with products of {} where it had {}: results will differ in their last digits", products,
                saved.products);
}

double Trainer::step_flops() const {
  const Index tokens = options_.batch * batcher_at(progress_.step).length() * options_.accumulate;
  double passes = options_.checkpoint_activations ? 4 : 3;  // forward once, backward twice, forward again
  if (const Index depth = options_.reach.depth; depth > 0 && depth < options_.segments - 1)
    passes = static_cast<double>(1 + 3 * (depth + 1));
  return passes * static_cast<double>(tokens) * model_->forward_flops(options_.length / 2);
}

CheckpointFacts Trainer::facts() const {
  TrainProgress progress = progress_;
  progress.settings = settings_of(options_, data_.digest());
  progress.threads = omp_get_max_threads();
  progress.products = blas::product_names();
  progress.carried_integers.clear();
  if (options_.carry_state) progress.carried_integers = carried_integers(carried_);
  return {to_json(model_->config()), to_json(progress), data_.tokenizer(), {}, history_};
}

}  // namespace quipu::inline QUIPU_REAL_NS
