#include "store/profile_file.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "store/describe.h"

using namespace quipu;

namespace {

Profile sample() {
  Profile p;
  p.products = "Haswell", p.simd_target = "AVX2";
  p.ceilings = {{1, 1e11, 1e10}, {2, 2e11, 1.5e10}};
  ProfileRow row;
  row.mixer = "gsa", row.mode = "train", row.length = 1 << 17, row.batch = 3, row.threads = 2, row.repeats = 9;
  row.seconds_per_token = 0.25, row.seconds_per_token_low = 0.125, row.seconds_per_token_high = 0.5;
  row.state_bytes = 262144, row.resident_bytes = 1 << 30, row.flops_per_token = 1.5e9, row.bytes_per_token = 3e6;
  row.ceiling_share = 0.75, row.memory_bound = true;
  row.ops = {{"linear", false, 12, 0.25}, {"linear", true, 12, 0.5}};
  ProfileRow none;
  none.mixer = "attention", none.mode = "train", none.length = 1 << 20, none.note = "memory: there\nis not enough";
  p.rows = {row, none, row};
  p.provenance.commands = {"profile --mixer gsa"};
  return p;
}

}  // namespace

TEST_CASE("profile file: what is saved is read again, notes on one line") {
  const quipu_test::TemporaryFolder folder;
  const std::string path = folder / "cost.h5";
  Profile profile = sample();
  save_profile(path, profile);
  profile.rows[1].note = "memory: there is not enough";
  CHECK(load_profile(path) == profile);
  save_profile(path, {});
  CHECK(load_profile(path) == Profile{});
}

TEST_CASE("profile file: columns of different lengths are refused") {
  const quipu_test::TemporaryFolder folder;
  const std::string path = folder / "cost.h5";
  {
    H5Writer file(path, kProfileFormat);
    file.attribute("/", "products", std::string("x"));
    file.attribute("/", "simd_target", std::string("x"));
    file.write("/ceilings/threads", std::vector<std::int64_t>{1, 2});
    file.write("/ceilings/flops_per_s", std::vector<double>{1});
    file.commit();
  }
  CHECK_THROWS_AS(load_profile(path), InputError);
}

TEST_CASE("profile file: it is described") {
  const quipu_test::TemporaryFolder folder;
  const std::string path = folder / "cost.h5";
  save_profile(path, sample());
  const FileDescription about = describe_file(path, true);
  CHECK(about.format == "quipu-profile");
  const auto fact = [&](const std::string& name) {
    for (const auto& [key, value] : about.facts)
      if (key == name) return value;
    FAIL("no fact " << name);
    return FileFact{};
  };
  CHECK(std::get<std::int64_t>(fact("rows")) == 3);
  CHECK(std::get<std::int64_t>(fact("measured")) == 2);
  CHECK(std::get<std::string>(fact("mixers")) == "gsa, attention");
}
