#include <doctest/doctest.h>

#include "base/error.h"
#include "train/train_samples.h"
#include "train/trainer.h"

using namespace quipu;
using quipu_test::TemporaryFolder;

namespace {

constexpr Index kVocab = 11;

TrainOptions tiny(const std::string& output) {
  TrainOptions o;
  o.output = output;
  o.model.mixer = "linear_attention";
  o.model.dim = 12, o.model.layers = 1, o.model.heads = 2;
  o.batch = 3;
  o.length = 7;
  o.schedule.steps = 9;
  o.eval_every = 2;
  return o;
}

}  // namespace

TEST_CASE("trainer: a validation loss that is low enough ends the run as finished, once and for all") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {90, 31, 60}, 50, kVocab);
  const Dataset data(folder / "d.h5");
  TrainOptions o = tiny(folder / "a.h5");
  o.stop_below_nats = 0.001;
  const TrainSummary whole = Trainer(data, o).run();
  CHECK(whole.step == 9);
  CHECK_FALSE(whole.solved);

  o.output = folder / "b.h5";
  o.stop_below_nats = 100;
  for (int call = 0; call < 2; ++call) {
    CAPTURE(call);
    const TrainSummary solved = Trainer(data, o).run();
    CHECK(solved.step == 2);
    CHECK(solved.best_step == 2);
    CHECK(solved.solved);
    CHECK_FALSE(solved.stopped);
  }
  o.stop_below_nats.reset();
  const TrainSummary on = Trainer(data, o).run();  // the same run without it goes on
  CHECK(on.step == 9);
  REQUIRE(on.best_valid_nats);
  REQUIRE(whole.best_valid_nats);
  CHECK(*on.best_valid_nats == doctest::Approx(*whole.best_valid_nats).epsilon(1e-5));  // files hold float32
}

TEST_CASE("trainer: a loss to end at needs a validation split") {
  const TemporaryFolder folder;
  write_sample_dataset(folder / "d.h5", {90}, 0, kVocab);
  const Dataset data(folder / "d.h5");
  TrainOptions o = tiny(folder / "a.h5");
  o.stop_below_nats = 1;
  CHECK_THROWS_WITH_AS(Trainer(data, o), doctest::Contains("has no validation split"), UsageError);
}
