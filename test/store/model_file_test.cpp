#include "store/model_file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/temporary_folder.h"
#include "store/describe.h"
#include "store/state_file.h"
#include "store/store_samples.h"

using namespace quipu;
using quipu_test::sample_checkpoint;
using quipu_test::sample_state;
using quipu_test::TemporaryFolder;

TEST_CASE("checkpoint: everything comes back, bit by bit and in order") {
  const TemporaryFolder folder;
  const std::string path = folder / "m.h5";
  Checkpoint saved = sample_checkpoint();
  saved.parameters[0].data[0] = -0.0F;
  saved.parameters[0].data[1] = std::numeric_limits<float>::denorm_min();
  save_checkpoint(path, saved);
  const Checkpoint loaded = load_checkpoint(path);
  CHECK(loaded.facts == saved.facts);
  CHECK(loaded.parameters == saved.parameters);
  CHECK(loaded.optimizer == saved.optimizer);
  CHECK(std::signbit(loaded.parameters[0].data[0]));
  const Checkpoint bare = load_checkpoint(path, {.parameters = true, .optimizer = false});
  CHECK(bare.parameters == saved.parameters);
  CHECK(bare.optimizer.empty());
}

TEST_CASE("checkpoint: arrays are read into memory that is there") {
  const TemporaryFolder folder;
  const std::string path = folder / "m.h5";
  const Checkpoint saved = sample_checkpoint();
  save_checkpoint(path, saved);
  const CheckpointFile file(path);
  REQUIRE(file.parameters().size() == saved.parameters.size());
  for (const NamedArray& array : saved.parameters) {
    CHECK(file.has_parameter(array.name));
    std::vector<float> data(array.data.size());
    file.read_parameter(array.name, data);
    CHECK(data == array.data);
  }
  CHECK(!file.has_parameter("none"));
  std::vector<float> data(1);
  CHECK_THROWS_WITH_AS(file.read_parameter("embed", data),
                       (path + ": /parameters/embed has 35 elements, not 1").c_str(), InputError);
  CHECK_THROWS_AS(file.read_parameter("none", data), InputError);
}

TEST_CASE("checkpoint: the digest of parameters is theirs alone") {
  const TemporaryFolder folder;
  Checkpoint saved = sample_checkpoint();
  save_checkpoint(folder / "m.h5", saved);
  const std::string digest = CheckpointFile(folder / "m.h5").parameter_digest();
  CHECK(digest == parameter_digest(views_of(saved.parameters)));
  CHECK(CheckpointFile(folder / "m.h5").file().text_attribute("/parameters", "parameter_digest") == digest);
  saved.facts.progress = "{}";
  saved.optimizer.clear();
  std::swap(saved.parameters[0], saved.parameters[1]);
  save_checkpoint(folder / "m.h5", saved);
  CHECK(CheckpointFile(folder / "m.h5").parameter_digest() == digest);
  saved.parameters[0].data[0] += 1.0F;
  CHECK(parameter_digest(views_of(saved.parameters)) != digest);
  saved.parameters[0].data[0] -= 1.0F;
  saved.parameters[0].name += "x";
  CHECK(parameter_digest(views_of(saved.parameters)) != digest);
}

TEST_CASE("checkpoint: arrays and shapes that disagree are refused, and the old file stays") {
  const TemporaryFolder folder;
  const std::string path = folder / "m.h5";
  Checkpoint saved = sample_checkpoint();
  save_checkpoint(path, saved);
  Checkpoint wrong = saved;
  wrong.parameters.back().data.pop_back();
  CHECK_THROWS_AS(save_checkpoint(path, wrong), ShapeError);
  CHECK(load_checkpoint(path).parameters == saved.parameters);
  CHECK(folder.entries() == 1);
}

TEST_CASE("state: comes back for its model and no other") {
  const TemporaryFolder folder;
  const std::string path = folder / "s.h5";
  const SavedState saved = sample_state();
  save_state(path, saved);
  CHECK(load_state(path, saved.parameter_digest) == saved);
  CHECK_THROWS_WITH_AS(load_state(path, "ff"), doctest::Contains("is the state of another model"), InputError);
  save_checkpoint(path, sample_checkpoint());
  CHECK_THROWS_WITH_AS(load_state(path, "ff"), (path + ": is a quipu-checkpoint file, not a quipu-state file").c_str(),
                       InputError);
}

TEST_CASE("describe: says what a file is") {
  const TemporaryFolder folder;
  const std::string path = folder / "m.h5";
  save_checkpoint(path, sample_checkpoint());
  const FileDescription about = describe_file(path, true);
  CHECK(about.format == "quipu-checkpoint");
  CHECK(about.version == 1);
  CHECK(about.file_bytes == std::filesystem::file_size(path));
  CHECK(about.digest == CheckpointFile(path).file().digest());
  const auto fact = [&](const std::string& name) {
    for (const auto& [known, value] : about.facts) {
      if (known == name) return std::get<std::int64_t>(value);
    }
    return std::int64_t{-1};
  };
  CHECK(fact("parameters") == 35 + 24 + 1);
  CHECK(fact("arrays") == 3);
  CHECK(std::ranges::count(about.contents,
                           std::pair<std::string, std::string>("/parameters/embed", "float32 [7, 5]")) == 1);
  save_state(path, sample_state());
  CHECK(describe_file(path).format == "quipu-state");
  quipu_test::write_sample_dataset(path);
  const FileDescription data = describe_file(path, true);
  CHECK(data.format == "quipu-dataset");
  CHECK(data.provenance.commands.size() == 1);
}
