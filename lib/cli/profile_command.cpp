#include "cli/profile_command.h"

#include <algorithm>

#include "base/log.h"
#include "mixers/registry.h"
#include "profile/mode.h"
#include "store/model_file.h"

namespace quipu {
namespace {

constexpr Index kUsualVocab = 8192;
constexpr Index kMostTokens = Index{1} << 40;

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void check_request(const ProfileRequest& r) {
  if (r.model.empty() && r.mixers.empty())
    throw UsageError("MODEL.h5: is missing; give a checkpoint, or mixers with --mixer");
  if (!r.model.empty() && !r.mixers.empty())
    throw UsageError("--mixer: makes models, and {} is one; give one of them", r.model);
  if (r.shape.precision != "f32" && r.mode != "train")
    throw UsageError("--precision {}: is of training; give --mode train, or a checkpoint whose weights are in bf16",
                     r.shape.precision);
  if (r.model == "-") throw UsageError("-: every cell reads the model anew; give it as a file");
  const TrainRequest& s = r.shape;
  const bool shaped = s.channel_mixer || s.norm || s.norm_place || s.memory_tokens || s.memory_mask || s.memory_state ||
                      s.positions || s.head || s.layers || s.dim || s.heads || !s.preset.empty() || r.context ||
                      r.vocab;
  if (!r.model.empty() && shaped)
    throw UsageError("{}: is a model with a shape of its own; leave out --dim, --layers and the like, or --mixer",
                     r.model);
}

bool has_mixer(const std::string& pattern, const std::string& name) {
  for (std::string part : split_at(pattern, '+')) {
    const std::size_t letter = part.find_first_not_of("0123456789");
    if (letter != std::string::npos && letter > 0 && part[letter] == 'x') part = part.substr(letter + 1);
    if (part == name) return true;
  }
  return false;
}

ModelConfig config_of(const ProfileRequest& r, const std::string& mixer, const std::vector<std::string>& all) {
  ModelConfig config = resolve_model(r.shape);
  // An option of another mixer of the list, such as gsa.slots, is not for this one.
  std::erase_if(config.options, [&](const auto& option) {
    const std::string owner = option.first.substr(0, option.first.find('.'));
    return option.first.find('.') != std::string::npos && !has_mixer(mixer, owner) &&
           std::ranges::any_of(all, [&](const std::string& other) { return has_mixer(other, owner); });
  });
  config.mixer = mixer;
  std::ranges::replace(config.mixer, '+', ',');
  config.vocab = r.vocab.value_or(kUsualVocab);
  config.length = r.context.value_or(kUsualLength);
  return config;
}

/// Builds the model of a cell once, small and without its numbers, so that what cannot be shows before anything is
/// measured.
void try_model(CellRequest& cell) {
  if (cell.model.empty()) {
    const LanguageModel model(cell_config(cell), false, matrices_in(NumberFormat::q4));
    for (const std::string& note : model.notes()) log_note("{}: {}", cell.mixer, note);
    return;
  }
  ModelConfig config = config_from_json(CheckpointFile(cell.model).facts().config);
  set_options(config, cell.settings);
  const LanguageModel model(config, false, matrices_in(NumberFormat::q4));
  cell.mixer = config.mixer;
}

}  // namespace

void add_profile_options(Command& tool, ProfileRequest& r) {
  add_argument(tool.section(), "MODEL.h5", r.model, false, "The checkpoint to measure, in place of --mixer.");
  const Section what = tool.section("What to measure"), model = tool.section("Model"), out = tool.section("Output");
  add_choice(what, "--mode", r.mode, {kModeNames.begin(), kModeNames.end()},
             "Draw one token after so many, read so many, or train on sequences of so many.");
  add_text(what, "--lengths", r.lengths, "N:N|N,N,..", "Tokens: doubled from the first to the last, or a list.");
  add_count(what, "--batch", r.batch, 1, 1 << 20, "Sequences at once.");
  add_value(what, {"--time", "TIME", "Time for the repeats of a cell, such as 0.5s or 1m, after its warm-up.", "1s"},
            [&r](const std::string& text) { r.seconds = parse_duration("--time", text); });
  add_precision_option(what, r.shape);
  add_flag(what, "--by-op", r.by_op, "Also where the time goes, by kind of operation, forward and backward.");
  add_text(
      model, "--mixer", r.mixers, "A,B,..|all",
      "Models of these token mixers with random weights; in a pattern a plus stands for its comma: 3xgsa+attention.");
  add_count(model, "--vocab", r.vocab, 1, 1 << 24, "Tokens in the vocabulary (default: 8192).");
  add_count(model, "--seq-len", r.context, 1, 1 << 24,
            "Context of models of fixed length (default: as long as each cell needs), and length of segments (default "
            "256).");
  add_shape_options(model, r.shape);
  add_flag(out, "--tsv", r.tsv, "The table for machines: columns parted by tabs, plain numbers.");
  add_text(out, "-o,--output", r.output, "FILE.h5", "Write all of it as HDF5.");
  add_text(out, "--plot", r.plot, "FILE.svg|png", "Draw time and memory against length with gnuplot.");
  add_value({&tool.app(), ""}, {"--cell", "JSON", "", ""}, [&r](const std::string& text) { r.cell = text; });
}

std::vector<Index> parse_lengths(const std::string& text) {
  std::vector<Index> lengths;
  for (const std::string& part : split_at(text, ',')) {
    const std::size_t colon = part.find(':');
    const Index first = parse_integer("--lengths", part.substr(0, colon), 1, kMostTokens);
    const Index last =
        colon == std::string::npos ? first : parse_integer("--lengths", part.substr(colon + 1), 1, kMostTokens);
    if (last < first)
      throw UsageError("--lengths {}: ends at {}, before its begin {}; write the shorter first", part, last, first);
    for (Index length = first; length <= last; length *= 2) lengths.push_back(length);
  }
  std::ranges::sort(lengths);
  const auto twice = std::ranges::unique(lengths);
  lengths.erase(twice.begin(), twice.end());
  return lengths;
}

std::vector<std::string> parse_mixers(const std::string& text) {
  std::vector<std::string> mixers;
  for (const std::string& name : split_at(text, ',')) {
    if (name.empty()) throw UsageError("--mixer {}: has an empty name; write them as gsa,attention", text);
    if (name != "all") {
      mixers.push_back(name);
      continue;
    }
    for (const MixerEntry& entry : registry())
      if (!entry.channel) mixers.emplace_back(entry.name);
  }
  return mixers;
}

std::vector<CellRequest> cells_of(const ProfileRequest& r, std::uint64_t seed) {
  check_request(r);
  const std::vector<Index> lengths = parse_lengths(r.lengths);
  const std::vector<std::string> mixers = r.model.empty() ? parse_mixers(r.mixers) : std::vector<std::string>{""};
  std::vector<CellRequest> cells;
  for (const std::string& mixer : mixers) {
    CellRequest cell;
    cell.mixer = mixer, cell.model = r.model;
    cell.fit_context = r.model.empty() && !r.context;
    cell.mode = mode_from_name(r.mode), cell.bf16 = r.shape.precision == "bf16";
    cell.length = lengths.front(), cell.batch = r.batch;
    cell.seconds = r.seconds, cell.by_op = r.by_op, cell.seed = seed;
    if (r.model.empty()) cell.config = config_of(r, mixer, mixers);
    if (!r.model.empty()) cell.settings = r.shape.set;
    try_model(cell);
    for (const Index length : lengths) {
      cell.length = length;
      cells.push_back(cell);
    }
  }
  return cells;
}

}  // namespace quipu
