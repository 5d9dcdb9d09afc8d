#include "train/training_log.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/temporary_folder.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;

namespace {

LogLine line_at(Index step) {
  LogLine line;
  line.step = step;
  line.tokens = 100 * step;
  line.loss_nats = 1.0 / 3;
  line.learning_rate = 1e-3;
  return line;
}

}  // namespace

TEST_CASE("training log: a line has the documented keys") {
  LogLine line = line_at(5);
  auto json = nlohmann::json::parse(to_json(line));
  for (const char* key : {"step", "tokens", "loss_nats", "lr", "tokens_per_s"}) CHECK(json.contains(key));
  CHECK_FALSE(json.contains("valid_loss_nats"));
  CHECK(json["loss_nats"].get<double>() == 1.0 / 3);
  line.valid_loss_nats = 0.5;
  CHECK(nlohmann::json::parse(to_json(line))["valid_loss_nats"] == 0.5);
}

TEST_CASE("training log: a resumed log keeps what is before its step") {
  const TemporaryFolder folder;
  const std::string path = folder / "log.jsonl";
  {
    TrainingLog log(path, 0);
    for (const Index step : {10, 20, 30}) log.write(line_at(step));
  }
  const std::string whole = read_whole(path);
  std::ofstream(path, std::ios::app) << "{\"step\": 40, \"tok";  // killed while it wrote
  {
    TrainingLog log(path, 20);
    log.write(line_at(30));
  }
  CHECK(read_whole(path) == whole);
  { TrainingLog log(path, 0); }
  CHECK(read_whole(path).empty());
  { TrainingLog log(path, 20); }
  CHECK(read_whole(path).empty());
}

TEST_CASE("training log: no path, no file; a folder that is not there is one line") {
  TrainingLog none("", 0);
  none.write(line_at(1));
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(TrainingLog(folder / "no/log.jsonl", 0),
                       doctest::Contains("log.jsonl: No such file or directory; give --log"), InputError);
}
