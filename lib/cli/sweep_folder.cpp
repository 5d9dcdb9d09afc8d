#include "cli/sweep_folder.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "base/lock_file.h"
#include "base/log.h"
#include "base/stop.h"
#include "store/dataset_file.h"

namespace quipu {
namespace {

constexpr double kTaskPatience_s = 1800;

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw InputError("{}: cannot make the folder: {}", path, error.message());
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

void write_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

std::string joined(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "; ")); }

void require_task(const RecallFileSpec& spec) {
  const Provenance here = recall_provenance(spec), there = Dataset(spec.output).provenance();
  if (here == there) return;
  if (here.commands != there.commands)
    throw UsageError("{}: was made by `{}`, this sweep makes it by `{}`; give the same options, or another folder",
                     spec.output, joined(there.commands), joined(here.commands));
  throw UsageError("{}: was made of {}, this sweep has {}; give the same texts, or another folder", spec.output,
                   joined(there.data), joined(here.data));
}

}  // namespace

void with_lock(const std::string& path, const std::function<bool(double)>& wait, const std::function<void()>& work) {
  constexpr double kPause_s = 0.1;
  for (double waited_s = 0;; waited_s += kPause_s) {
    std::optional<LockFile> lock;
    try {
      lock.emplace(path);
    } catch (const InputError&) {
      if (!exists(path + ".lock") && waited_s > 1) throw;
      if (!wait(waited_s)) throw;
    }
    if (lock) return work();
    std::this_thread::sleep_for(std::chrono::duration<double>(kPause_s));
  }
}

void SweepFolder::make() const { make_folder(path_ + "/cells"); }

std::string SweepFolder::cell_file(const std::string& cell, const std::string& name) const {
  return fmt::format("{}/cells/{}/{}", path_, cell, name);
}

bool SweepFolder::has(const std::string& cell, const std::string& name) const { return exists(cell_file(cell, name)); }

void SweepFolder::require_seal(const std::string& cell, const SweepSeal& seal) const {
  const std::string path = cell_file(cell, "cell.json");
  if (!exists(path)) return;
  const SweepSeal there = seal_from_json(InputFile(path).read_all(), path);
  if (const auto d = difference(seal, there))
    throw UsageError("{}: was begun with {} {}, this sweep has {}; give the same options, or another folder",
                     cell_file(cell, "cell.json"), d->option, d->there, d->here);
}

void SweepFolder::open_cell(const std::string& cell, const SweepSeal& seal) const {
  require_seal(cell, seal);
  make_folder(fmt::format("{}/cells/{}", path_, cell));
  if (!has(cell, "cell.json")) write(cell, "cell.json", to_json(seal));
}

std::optional<Json> SweepFolder::read(const std::string& cell, const std::string& name) const {
  if (!has(cell, name)) return std::nullopt;
  const std::string path = cell_file(cell, name);
  Json json = Json::parse(InputFile(path).read_all(), nullptr, false);
  if (!json.is_object())
    throw InputError("{}: is no JSON object; remove it, and the cell is done again from there", path);
  return json;
}

void SweepFolder::write(const std::string& cell, const std::string& name, const std::string& text) const {
  write_file(cell_file(cell, name), text);
}

void SweepFolder::add_cost(const std::string& cell, const std::string& stage, const ChildEnd& end) const {
  std::ofstream file(cell_file(cell, "costs.tsv"), std::ios::app);
  file << fmt::format("{}\t{:.3f}\t{}\t{}\n", stage, end.wall_s, end.peak_bytes, end.status);
  if (!file.flush()) throw InputError("{}: cannot write", cell_file(cell, "costs.tsv"));
}

SweepCost SweepFolder::cost(const std::string& cell) const {
  SweepCost cost;
  std::ifstream file(cell_file(cell, "costs.tsv"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string stage;
    double wall_s = 0;
    Index peak_bytes = 0;
    if (!(words >> stage >> wall_s >> peak_bytes)) continue;  // cut short by a crash
    (stage == "train" ? cost.train_s : cost.score_s) += wall_s;
    cost.peak_bytes = std::max(cost.peak_bytes, peak_bytes);
  }
  return cost;
}

void SweepFolder::make_task(const RecallFileSpec& spec) const {
  make_folder(path_ + "/tasks");
  bool said = false;
  if (exists(spec.output)) return require_task(spec);
  with_lock(
      spec.output,
      [&](double waited_s) {
        if (!said) log_note("{}: waits for the process that makes it", spec.output);
        said = true;
        return waited_s < kTaskPatience_s && !stop_requested();
      },
      [&] {
        if (exists(spec.output)) return;
        const RecallFileSummary made = make_recall_file(spec);
        log_note("{}: {} examples; audit: {}", spec.output, grouped(made.findings.examples), made.findings.text());
      });
  require_task(spec);
}

const Json* SweepResults::find(std::size_t cell) {
  if (const auto found = found_.find(cell); found != found_.end()) return &found->second;
  const RateChoice rate = rate_of(cell);
  if (!rate.rate) return nullptr;
  std::optional<Json> json = folder_.read(plan_.grid.name(plan_.grid.cells[cell], rate.rate), "result.json");
  if (!json) return nullptr;
  return &found_.emplace(cell, std::move(*json)).first->second;
}

RateChoice SweepResults::rate_of(std::size_t cell) {
  const SweepCell& c = plan_.grid.cells[cell];
  return c.rate ? RateChoice{true, c.rate} : choice(c.point);
}

RateChoice SweepResults::choice(std::size_t point) {
  if (const auto found = choices_.find(point); found != choices_.end()) return found->second;
  RateChoice best{.decided = true, .rate = {}};
  double accuracy = 0, loss = 0;
  std::optional<std::uint64_t> first_seed;
  for (std::size_t i = 0; i < plan_.grid.cells.size(); ++i) {
    const SweepCell& cell = plan_.grid.cells[i];
    if (cell.point != point || !cell.rate || cell.seed != first_seed.value_or(cell.seed)) continue;
    first_seed = cell.seed;
    const Json* result = find(i);
    if (result == nullptr) return {};
    if (result->at("outcome") != "done") continue;
    const double its_accuracy = result->at("valid_accuracy").get<double>();
    const double its_loss = result->at("valid_loss_nats").get<double>();
    if (best.rate && (its_accuracy < accuracy || (its_accuracy == accuracy && its_loss >= loss))) continue;
    best.rate = cell.rate, accuracy = its_accuracy, loss = its_loss;
  }
  choices_[point] = best;
  return best;
}

}  // namespace quipu
