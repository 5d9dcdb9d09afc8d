#include "golden.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"

namespace quipu {
namespace {

TEST_CASE("golden: cases, tensors and attributes of a file") {
  const GoldenFile file("optim");
  const std::vector<std::string> cases = file.cases();
  CHECK(cases.size() == 7);
  CHECK(std::is_sorted(cases.begin(), cases.end()));

  const GoldenCase adamw = file.at("adamw");
  const GoldenTensor init = adamw.tensor("param0/init");
  CHECK(init.shape == std::vector<Index>{3, 4});
  CHECK(init.values.size() == 12);
  CHECK(init.values[1] == 0.7861328125);
  CHECK(init.as<float>()[1] == 0.7861328125f);
  CHECK(adamw.has("param1"));
  CHECK_FALSE(adamw.has("param9/init"));
  CHECK(adamw.tensors("param0").front() == "after_step1");
  CHECK(adamw.tensors("absent").empty());
  CHECK(adamw.tensors().size() == 26);

  CHECK(adamw.number("beta2") == 0.95);
  CHECK(adamw.number_or("absent", 7) == 7);
  CHECK(adamw.text("source") == "torch 1.13.1");
  CHECK(file.at("adamw_varying_lr").numbers("lrs").size() == 5);
}

TEST_CASE("golden: what is missing or of the wrong kind is named") {
  const GoldenFile file("optim");
  CHECK_THROWS_AS(GoldenFile("no_such_file"), InputError);
  CHECK_FALSE(GoldenFile::exists("no_such_file"));
  CHECK_THROWS_AS(file.at("no_such_case"), InputError);
  const GoldenCase adamw = file.at("adamw");
  CHECK_THROWS_AS(adamw.tensor("param9/init"), InputError);
  CHECK_THROWS_AS(adamw.tensor("param0"), InputError);
  CHECK_THROWS_AS(adamw.number("source"), InputError);
  CHECK_THROWS_AS(adamw.text("beta2"), InputError);
  CHECK_THROWS_AS(file.at("adamw_varying_lr").number("lrs"), InputError);
}

}  // namespace
}  // namespace quipu
