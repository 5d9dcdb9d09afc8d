#include "train/trainer.h"

#include <doctest/doctest.h>
#include <omp.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/stop.h"
#include "tensor/arena.h"
#include "train/train_samples.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;

namespace {

constexpr Index kVocab = 11;

TrainOptions tiny(const TemporaryFolder& folder, const std::string& name) {
  TrainOptions o;
  o.output = folder / (name + ".h5");
  o.log = folder / (name + ".jsonl");
  o.model.mixer = "gsa";
  o.model.dim = 12;
  o.model.layers = 2;
  o.model.heads = 2;
  o.model.options = {{"slots", "5"}};
  o.batch = 3;
  o.length = 7;
  o.schedule.steps = 8;
  o.schedule.warmup = 2;
  o.log_every = 2;
  o.eval_every = 4;
  o.command = "train " + name;
  return o;
}

std::vector<Real> weights(Trainer& trainer) {
  const auto values = trainer.model().parameters().values();
  return {values.begin(), values.end()};
}

bool same_bits(const std::vector<Real>& a, const std::vector<Real>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0;
}

/// The log without what depends on time and machine.
std::vector<nlohmann::json> timeless(const std::string& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) {
    auto json = nlohmann::json::parse(line);
    json.erase("tokens_per_s");
    json.erase("memory_bytes");
    lines.push_back(json);
  }
  return lines;
}

/// Runs until step `stop_at` is done, then asks for a stop, as a signal would (0: never).
TrainSummary run_until(Trainer& trainer, Index stop_at) {
  reset_stop();
  const TrainSummary summary = trainer.run({.on_line = {}, .on_step = [&](Index step, double) {
                                              if (step == stop_at) set_time_limit(0);
                                            }});
  reset_stop();
  return summary;
}

struct Finished {
  std::vector<Real> weights;
  std::vector<nlohmann::json> log;
  TrainSummary summary;
};

Finished straight(const Dataset& data, TrainOptions options) {
  Trainer trainer(data, options);
  const TrainSummary summary = run_until(trainer, 0);
  return {weights(trainer), timeless(options.log), summary};
}

/// The same, stopped after each of these steps and started again.
Finished interrupted(const Dataset& data, TrainOptions options, const std::vector<Index>& stops) {
  for (const Index stop : stops) {
    Trainer trainer(data, options);
    const TrainSummary summary = run_until(trainer, stop);
    CHECK(summary.stopped);
    CHECK(summary.step == stop);
  }
  Trainer trainer(data, options);
  CHECK(trainer.resumed_from() == options.output);
  CHECK(trainer.progress().step == stops.back());
  const TrainSummary summary = run_until(trainer, 0);
  CHECK_FALSE(summary.stopped);
  return {weights(trainer), timeless(options.log), summary};
}

void check_same(const Finished& a, const Finished& b) {
#ifdef QUIPU_DOUBLE  // files hold float32
  REQUIRE(a.weights.size() == b.weights.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.weights.size(); ++i) worst = std::max(worst, std::abs(a.weights[i] - b.weights[i]));
  CHECK(worst < 1e-3);
  CHECK(a.log.size() == b.log.size());
#else
  CHECK(same_bits(a.weights, b.weights));
  CHECK(a.log == b.log);
  CHECK(a.summary.loss_nats == b.summary.loss_nats);
  CHECK(a.summary.best_valid_nats == b.summary.best_valid_nats);
  CHECK(a.summary.best_step == b.summary.best_step);
#endif
}

/// Sets OpenMP's threads while it lives.
class Threads {
 public:
  explicit Threads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~Threads() { omp_set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace

TEST_CASE("trainer: a resumed run is the uninterrupted one, bit for bit") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {90, 31, 60}, 50, kVocab);
  const Dataset data(folder / "d.h5");
  for (const int threads : {1, 2, 4}) {
    const Threads now(threads);
    for (const std::string kind : {"plain", "carried", "accumulated", "dropped"}) {
      INFO(threads, " threads, ", kind);
      TrainOptions o = tiny(folder, kind + std::to_string(threads));
      o.carry_state = kind == "carried";
      if (kind == "accumulated") o.accumulate = 3;
      if (kind == "dropped") o.dropout = 0.2, o.layer_dropout = 0.3, o.label_smoothing = 0.1;
      TrainOptions other = o;
      other.output += ".cut.h5", other.log += ".cut";
      const Finished whole = straight(data, o);
      CHECK(whole.log.size() == 4);
      CHECK(whole.log[1].contains("valid_loss_nats"));
      // In the warm-up, just before a line, at a line with an evaluation, and after it.
      check_same(whole, interrupted(data, other, {1, 3, 4, 7}));
    }
  }
}

TEST_CASE("trainer: the checkpoint of a resumed run has the bytes of the uninterrupted one") {
#ifndef QUIPU_DOUBLE
  const TemporaryFolder folder;
  setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
  write_sample_dataset(folder / "d.h5", {181}, 50, kVocab);
  const Dataset data(folder / "d.h5");
  TrainOptions a = tiny(folder, "a"), b = tiny(folder, "b");
  b.command = a.command;
  a.carry_state = b.carry_state = true;
  straight(data, a);
  interrupted(data, b, {3});
  CHECK(read_whole(a.output) == read_whole(b.output));
  CHECK(read_whole(folder / "a.best.h5") == read_whole(folder / "b.best.h5"));
  unsetenv("SOURCE_DATE_EPOCH");
#endif
}

TEST_CASE("trainer: growing memories are carried and resumed as well") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {100, 81}, 50, kVocab);
  const Dataset data(folder / "d.h5");
  TrainOptions o = tiny(folder, "a");
  o.model.mixer = "gsa,attention";
  o.model.options = {{"gsa.slots", "5"}};
  o.model.positions = "none";
  o.carry_state = true;
  TrainOptions other = o;
  other.output += ".cut.h5", other.log += ".cut";
  std::string warnings;
  const LogSink before = set_log_sink([&](LogKind kind, const std::string& line) {
    if (kind == LogKind::kWarning) warnings += line;
  });
  check_same(straight(data, o), interrupted(data, other, {2, 5}));
  set_log_sink(before);
  CHECK(warnings.find("--carry-state: this model's memory grows") != std::string::npos);
}

TEST_CASE("trainer: a stop while it evaluates loses nothing") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {181}, 60, kVocab);
  const Dataset data(folder / "d.h5");
  const TrainOptions o = tiny(folder, "a");
  TrainOptions other = o;
  other.output += ".cut.h5", other.log += ".cut";
  const Finished whole = straight(data, o);
  // Step 4 is done and its evaluation is what the stop meets first.
  check_same(whole, interrupted(data, other, {4}));
  Trainer again(data, other);
  CHECK(again.progress().step == 8);
  const TrainSummary nothing_left = run_until(again, 0);
  CHECK(nothing_left.step == 8);
  CHECK_FALSE(nothing_left.stopped);
#ifdef QUIPU_DOUBLE  // files hold float32
  CHECK(timeless(other.log).size() == whole.log.size());
#else
  CHECK(timeless(other.log) == whole.log);
#endif
}

TEST_CASE("trainer: a stop before the first step saves where it stands") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {181}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  const TrainOptions o = tiny(folder, "a");
  reset_stop();
  set_time_limit(0);
  {
    Trainer trainer(data, o);
    CHECK_FALSE(trainer.estimate().has_value());
    const TrainSummary summary = trainer.run();
    CHECK(summary.stopped);
    CHECK(summary.step == 0);
  }
  reset_stop();
  Trainer trainer(data, o);
  CHECK(trainer.resumed_from() == o.output);
  CHECK(run_until(trainer, 0).step == 8);
}

TEST_CASE("trainer: checkpointed activations give the same weights") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {90, 91}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  TrainOptions plain = tiny(folder, "plain"), checkpointed = tiny(folder, "checkpointed");
  plain.schedule.steps = checkpointed.schedule.steps = 3;
  plain.dropout = checkpointed.dropout = 0.1;
  checkpointed.checkpoint_activations = true;
  CHECK(same_bits(straight(data, plain).weights, straight(data, checkpointed).weights));
}

TEST_CASE("trainer: accumulated batches are one large one") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {90, 91, 40}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  TrainOptions large = tiny(folder, "large"), parts = tiny(folder, "parts");
  large.batch = 6;
  parts.batch = 2, parts.accumulate = 3;  // reads the same windows in the same order
  const auto a = straight(data, large), b = straight(data, parts);
  double worst = 0;
  for (std::size_t i = 0; i < a.weights.size(); ++i)
    worst = std::max(worst, static_cast<double>(std::abs(a.weights[i] - b.weights[i])));
  CHECK(worst > 0);  // another order of sums
  CHECK(worst < (sizeof(Real) == 8 ? 1e-9 : 2e-3));
  CHECK(a.summary.loss_nats == doctest::Approx(b.summary.loss_nats).epsilon(1e-4));
}

TEST_CASE("trainer: a tiny model learns a tiny text by heart") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {60}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  TrainOptions o = tiny(folder, "a");
  o.model.dim = 24;
  o.batch = 4, o.length = 20;
  o.schedule.steps = 250, o.schedule.peak = 1e-2, o.schedule.warmup = 10;
  o.optimizer.weight_decay = 0;
  const TrainSummary summary = straight(data, o).summary;
  CHECK(summary.loss_nats < 0.5);  // a guess: ln 11 = 2.4; the first tokens of a window cannot be known
}

TEST_CASE("trainer: the learning rates of the log are the schedule's") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {181}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  TrainOptions o = tiny(folder, "a");
  o.log_every = 1;
  const auto log = straight(data, o).log;
  REQUIRE(log.size() == 8);
  for (std::size_t i = 0; i < log.size(); ++i) {
    CHECK(log[i]["step"] == i + 1);
    CHECK(log[i]["tokens"] == (i + 1) * 21);
    CHECK(log[i]["lr"].get<double>() == learning_rate(o.schedule, static_cast<Index>(i)));
  }
  CHECK(log[0]["lr"].get<double>() == doctest::Approx(5e-4));
  CHECK(log[1]["lr"].get<double>() == doctest::Approx(1e-3));
}

TEST_CASE("trainer: a number that is not finite stops the run and spares the checkpoint") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {181}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  const TrainOptions o = tiny(folder, "a");
  {
    Trainer trainer(data, o);
    run_until(trainer, 3);
  }
  const std::string saved = read_whole(o.output);
  {
    Trainer trainer(data, o);
    const auto entries = trainer.model().parameters().trainable();
    const auto& entry = entries[entries.size() / 2];
    trainer.model().parameters().values()[static_cast<std::size_t>(entry.begin)] =
        std::numeric_limits<Real>::quiet_NaN();
    const std::string start = "step 4: ", name = "first in the weight " + entry.name + ";";
    CHECK_THROWS_WITH_AS(trainer.run(), doctest::Contains(start.c_str()), NumericError);
    CHECK_THROWS_WITH_AS(trainer.run(), doctest::Contains(name.c_str()), NumericError);
  }
  CHECK(read_whole(o.output) == saved);
  TrainOptions wild = tiny(folder, "wild");
  wild.schedule.peak = 1e30;
  Trainer trainer(data, wild);
  CHECK_THROWS_AS(trainer.run(), NumericError);
}

TEST_CASE("trainer: a checkpoint that disagrees is not overwritten") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {181}, 0, kVocab);
  write_sample_dataset(folder / "other.h5", {182}, 0, kVocab);
  const Dataset data(folder / "d.h5"), other(folder / "other.h5");
  TrainOptions o = tiny(folder, "a");
  o.schedule.steps = 2, o.schedule.warmup = 1;
  straight(data, o);
  const std::string saved = read_whole(o.output);

  TrainOptions wide = o;
  wide.model.dim = 16;
  CHECK_THROWS_WITH_AS(Trainer(data, wide), doctest::Contains("a.h5: is a model with --dim 12, this run has 16; give"),
                       UsageError);
  TrainOptions slots = o;
  slots.model.options = {{"slots", "6"}};
  CHECK_THROWS_WITH_AS(Trainer(data, slots), doctest::Contains("--set gsa.slots 5, this run has 6"), UsageError);
  TrainOptions rate = o;
  rate.schedule.peak = 2e-3;
  CHECK_THROWS_WITH_AS(Trainer(data, rate), doctest::Contains("trained with --lr 0.001, this run has 0.002"),
                       UsageError);
  CHECK_THROWS_WITH_AS(Trainer(other, o), doctest::Contains("a.h5: was trained with data "), UsageError);
  CHECK(read_whole(o.output) == saved);

  rate.resume = o.output;  // asked for by name: goes on with the new rate
  CHECK(Trainer(data, rate).progress().step == 2);
  TrainOptions longer = o;
  longer.schedule.steps = 4;
  {
    Trainer trainer(data, longer);
    CHECK(trainer.progress().step == 2);
    CHECK(run_until(trainer, 0).step == 4);
  }
  wide.resume = "never";
  Trainer fresh(data, wide);
  CHECK(fresh.resumed_from().empty());
  CHECK(run_until(fresh, 0).step == 2);
}

TEST_CASE("trainer: a damaged last checkpoint gives way to one that was kept") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {181}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  TrainOptions o = tiny(folder, "a");
  o.save_every = 2;
  o.keep = 2;
  const Finished whole = straight(data, o);
  CHECK_FALSE(std::filesystem::exists(folder / "a.step-000004.h5"));
  CHECK(std::filesystem::exists(folder / "a.step-000006.h5"));
  CHECK(std::filesystem::exists(folder / "a.step-000008.h5"));
  std::filesystem::remove(folder / "a.step-000008.h5");
  std::filesystem::remove(o.output);
  std::ofstream(o.output) << "no checkpoint";
  Trainer trainer(data, o);
  CHECK(trainer.progress().step == 6);
  run_until(trainer, 0);
#ifndef QUIPU_DOUBLE
  CHECK(same_bits(weights(trainer), whole.weights));
#endif
}

TEST_CASE("trainer: --init starts from other weights") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {181}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  const TrainOptions first = tiny(folder, "first");
  const Finished trained = straight(data, first);
  TrainOptions second = tiny(folder, "second");
  second.init = first.output;
  Trainer trainer(data, second);
  CHECK(trainer.progress().step == 0);
  const auto start = weights(trainer);
  for (std::size_t i = 0; i < start.size(); ++i)
    CHECK(static_cast<float>(start[i]) == static_cast<float>(trained.weights[i]));
  second.output = folder / "third.h5";
  second.model.dim = 16;
  CHECK_THROWS_WITH_AS(Trainer(data, second), doctest::Contains("the model's is [11, 16]; give a checkpoint of the"),
                       InputError);
}

TEST_CASE("trainer: a second one on the same output is refused while the first lives") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {181}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  const TrainOptions o = tiny(folder, "a");
  const Trainer first(data, o);
  CHECK_THROWS_AS(Trainer(data, o), InputError);
}

TEST_CASE("trainer: memory expected is about what a step takes") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {2000}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  TrainOptions o = tiny(folder, "a");
  o.model.dim = 32;
  o.batch = 8, o.length = 64;
  Trainer trainer(data, o);
  const auto before = weights(trainer);
  const auto memory = trainer.estimate();
  REQUIRE(memory.has_value());
  CHECK(same_bits(before, weights(trainer)));
  CHECK(memory->parameters == before.size() * sizeof(Real));
  CHECK(memory->optimizer == 2 * memory->parameters);
  const std::size_t start = arena::usage().in_use;
  run_until(trainer, 2);
  const auto taken = static_cast<double>(arena::usage().high_water - start);
  CHECK(static_cast<double>(memory->activations) > 0.9 * taken);
  CHECK(static_cast<double>(memory->activations) < 1.3 * taken);
}
