#include "cli/sweep_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/lock_file.h"
#include "base/log.h"
#include "base/stop.h"
#include "cli/progress.h"
#include "cli/sweep_report.h"

namespace quipu {
namespace {

constexpr int kShellSignal = 128;  // what a shell adds to the number of a signal that ended a process

/// The tools beside this one; a prefix of its name is one of theirs.
struct Tools {
  std::string train, bench;

  Tools() {
    const auto [folder, name] = own_program();
    constexpr std::string_view kName = "recall-bench";
    const std::string prefix = name.ends_with(kName) ? name.substr(0, name.size() - kName.size()) : "";
    train = folder + "/" + prefix + "train";
    bench = folder + "/" + name;
    if (::access(train.c_str(), X_OK) != 0)
      throw InputError("{}: is not there, and a sweep trains with it; install the tools in one folder", train);
  }
};

/// The last line of a log that says something.
std::string last_line(const std::string& path) {
  const std::string text = InputFile(path).read_all();
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

enum class Stage { train, valid, test };
constexpr Stage kStages[] = {Stage::train, Stage::valid, Stage::test};
const char* name_of(Stage stage) { return stage == Stage::train ? "train" : stage == Stage::valid ? "valid" : "test"; }
std::string output_of(Stage stage) { return fmt::format("{}.json", name_of(stage)); }

/// A cell that is being worked on.
struct Job {
  std::size_t cell = 0;
  double rate = 0;
  std::string name;
  Stage stage = Stage::train;
  std::unique_ptr<LockFile> lock;
  std::unique_ptr<ChildProcess> child;
};

class SweepRun {
 public:
  SweepRun(const SweepPlan& plan, const SweepFolder& folder, Index jobs, const std::function<void()>& on_result)
      : plan_(plan),
        folder_(folder),
        results_(plan, folder),
        limit_(static_cast<std::size_t>(jobs)),
        threads_(std::max(1, plan.common.threads / static_cast<int>(jobs))),
        on_result_(on_result),
        pending_(plan.mine) {}

  SweepSummary operator()() {
    check_seals();
    settle();
    make_tasks();
    Progress progress("sweep", "cells", static_cast<double>(plan_.mine.size()), static_cast<double>(summary_.done));
    while (true) {
      if (stop_requested()) stop();
      while (changed_ && !summary_.stopped) fill();
      if (jobs_.empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      poll();
      progress.update(static_cast<double>(summary_.done), fmt::format("{} running", jobs_.size()));
    }
    progress.finish();
    settle();
    summary_.waiting = summary_.stopped ? 0 : static_cast<Index>(pending_.size());
    return summary_;
  }

 private:
  /// Nothing is done where a cell of the call is there with other options.
  void check_seals() {
    for (const std::size_t cell : plan_.mine)
      if (const RateChoice rate = results_.rate_of(cell); rate.rate)
        folder_.require_seal(name(cell, *rate.rate), seal_of(plan_, plan_.grid.cells[cell], *rate.rate));
  }

  std::string name(std::size_t cell, double rate) const { return plan_.grid.name(plan_.grid.cells[cell], rate); }

  /// Takes out of the pending ones what is done, also by another process, and what cannot be done.
  void settle() {
    std::erase_if(pending_, [&](std::size_t cell) {
      if (const Json* result = results_.find(cell)) {
        count(cell, *result);
        return true;
      }
      const RateChoice rate = results_.rate_of(cell);
      if (!rate.decided || rate.rate) return false;
      ++summary_.diverged;
      log_warning("{}: no rate gave finite numbers, so there is none for seed {}; give lower ones with --lr",
                  plan_.grid.name(plan_.grid.cells[cell], std::nullopt), plan_.grid.cells[cell].seed);
      return true;
    });
  }

  void count(std::size_t cell, const Json& result) {
    ++summary_.done;
    if (result.at("outcome") == "done") return;
    // One of several rates may diverge: it is simply not the best one.
    const bool is_try = plan_.grid.cells[cell].rate && std::ranges::count_if(plan_.grid.cells, [&](const SweepCell& c) {
                                                         return c.point == plan_.grid.cells[cell].point && c.rate &&
                                                                c.seed == plan_.grid.cells[cell].seed;
                                                       }) > 1;
    if (!is_try) ++summary_.diverged;
  }

  void make_tasks() {
    std::set<std::size_t> needed;
    for (const std::size_t cell : pending_) needed.insert(plan_.grid.points[plan_.grid.cells[cell].point].task);
    for (const std::size_t task : needed) {
      if (stop_requested()) return;
      try {
        folder_.make_task(plan_.tasks[task]);
      } catch (const InputError&) {
        if (!stop_requested()) throw;  // it waited for another process
      }
    }
  }

  void stop() {
    if (!summary_.stopped)
      for (const Job& job : jobs_) job.child->signal(SIGTERM);
    summary_.stopped = true;
  }

  /// Starts what can be started.
  void fill() {
    changed_ = false;
    settle();
    for (const std::size_t cell : pending_) {
      if (jobs_.size() >= limit_) return;
      if (given_up_.contains(cell) || std::ranges::find(jobs_, cell, &Job::cell) != jobs_.end()) continue;
      if (const RateChoice rate = results_.rate_of(cell); rate.rate) start(cell, *rate.rate);
    }
  }

  void start(std::size_t cell, double rate) {
    Job job{.cell = cell, .rate = rate, .name = name(cell, rate), .stage = Stage::train, .lock = {}, .child = {}};
    folder_.open_cell(job.name, seal_of(plan_, plan_.grid.cells[cell], rate));
    try {
      job.lock = std::make_unique<LockFile>(folder_.cell_file(job.name, "result.json"));
    } catch (const InputError& error) {
      log_note("{}", error.what());
      given_up_.insert(cell);
      return;
    }
    if (!folder_.has(job.name, "result.json")) advance(job);
    if (job.child)
      jobs_.push_back(std::move(job));
    else
      changed_ = true;  // its rate may be what others wait for
  }

  /// Starts the first stage that is not done, or sums up where all are.
  void advance(Job& job) {
    for (const Stage stage : kStages) {
      if (folder_.has(job.name, output_of(stage))) continue;
      job.stage = stage;
      job.child = std::make_unique<ChildProcess>(stage == Stage::train ? tools_.train : tools_.bench, words(job),
                                                 folder_.cell_file(job.name, output_of(stage) + ".part"),
                                                 folder_.cell_file(job.name, "log.txt"));
      return;
    }
    const auto read = [&](Stage stage) { return folder_.read(job.name, output_of(stage)).value(); };
    finish(job, cell_result(plan_, job.cell, job.rate, read(Stage::train), read(Stage::valid), read(Stage::test)));
  }

  std::vector<std::string> words(const Job& job) const {
    std::vector<std::string> words = job.stage == Stage::train ? train_words(job) : score_words(job);
    words.insert(words.end(), {"--json", "--threads", fmt::format("{}", threads_), "--blas", plan_.common.blas});
    return words;
  }

  std::vector<std::string> score_words(const Job& job) const {
    return {"run", folder_.cell_file(job.name, "model.best.h5"), task(job), "--split", name_of(job.stage), "--quiet"};
  }

  std::vector<std::string> train_words(const Job& job) const {
    const SweepCell& cell = plan_.grid.cells[job.cell];
    const TrainRequest request = request_of(plan_, cell, job.rate);
    std::vector<std::string> words = plan_.words;
    words.insert(words.begin(), task(job));
    const auto add = [&](const char* option, const std::string& value) { words.insert(words.end(), {option, value}); };
    add("--output", folder_.cell_file(job.name, "model.h5"));
    add("--log", folder_.cell_file(job.name, "train.jsonl"));
    add("--mixer", *request.mixer);
    if (request.heads) add("--heads", fmt::format("{}", *request.heads));
    for (const std::string& setting : request.set) add("--set", setting);
    add("--layers", fmt::format("{}", *request.layers));
    add("--dim", fmt::format("{}", *request.dim));
    add("--lr", fmt::format("{}", job.rate));
    add("--seed", fmt::format("{}", cell.seed));
    if (const double left_s = time_left_s(); std::isfinite(left_s))
      add("--time-limit", fmt::format("{:.3f}s", std::max(left_s, 0.001)));
    return words;
  }

  const std::string& task(const Job& job) const {
    return plan_.tasks[plan_.grid.points[plan_.grid.cells[job.cell].point].task].output;
  }

  void poll() {
    std::vector<Job> running = std::move(jobs_);
    jobs_.clear();
    for (Job& job : running) {
      if (const auto end = job.child->poll()) {
        job.child.reset();
        changed_ = true;
        folder_.add_cost(job.name, name_of(job.stage), *end);
        take(job, end->status);
      }
      if (job.child) jobs_.push_back(std::move(job));
    }
  }

  /// What the end of a process means.
  void take(Job& job, int status) {
    const std::string part = folder_.cell_file(job.name, output_of(job.stage) + ".part");
    if (status == static_cast<int>(Status::kDone)) {
      folder_.write(job.name, output_of(job.stage), InputFile(part).read_all());
      std::filesystem::remove(part);
      if (!summary_.stopped || job.stage == Stage::test) advance(job);
      return;
    }
    std::filesystem::remove(part);
    const bool by_us = summary_.stopped && status > kShellSignal;  // before it could catch the signal, or in a scoring
    if (status == static_cast<int>(Status::kStopped) || by_us) return stop();
    const std::string log = folder_.cell_file(job.name, "log.txt");
    if (job.stage == Stage::train && status == static_cast<int>(Status::kNumeric)) {
      log_warning("{}: {}", job.name, last_line(log));
      return finish(job, diverged_result(plan_, job.cell, job.rate));
    }
    ++summary_.failed;
    given_up_.insert(job.cell);
    std::erase(pending_, job.cell);
    log_warning("{}: {}", job.name,
                status > kShellSignal
                    ? fmt::format("{} was ended by signal {}; see {}", name_of(job.stage), status - kShellSignal, log)
                    : last_line(log));
  }

  void finish(Job& job, const Json& result) {
    folder_.write(job.name, "result.json", json_line(result));
    // What training would go on from is three times the model, and is not needed any more.
    if (folder_.has(job.name, "model.best.h5")) std::filesystem::remove(folder_.cell_file(job.name, "model.h5"));
    job.lock.reset();
    if (result.at("outcome") == "done")
      log_note("{}: accuracy {:.4f} (95 %: {:.4f} to {:.4f}), on validation {:.4f}, step {}", job.name,
               result.at("accuracy").get<double>(), result.at("accuracy_low").get<double>(),
               result.at("accuracy_high").get<double>(), result.at("valid_accuracy").get<double>(),
               result.at("steps").get<Index>());
    on_result_();
  }

  const SweepPlan& plan_;
  const SweepFolder& folder_;
  SweepResults results_;
  Tools tools_;
  std::size_t limit_;
  int threads_;
  const std::function<void()>& on_result_;
  std::vector<std::size_t> pending_;
  std::set<std::size_t> given_up_;  ///< that failed, or that another process is at
  std::vector<Job> jobs_;
  SweepSummary summary_;
  bool changed_ = true;
};

}  // namespace

Status SweepSummary::status() const {
  if (stopped) return Status::kStopped;
  if (failed + diverged > 0) return Status::kFailed;
  return waiting > 0 ? Status::kStopped : Status::kDone;
}

SweepSummary run_sweep(const SweepPlan& plan, const SweepFolder& folder, Index jobs,
                       const std::function<void()>& on_result) {
  return SweepRun(plan, folder, jobs, on_result)();
}

}  // namespace quipu
