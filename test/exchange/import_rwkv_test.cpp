#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "exchange/import_model.h"
#include "golden.h"
#include "real_data.h"

using namespace quipu;
using quipu_test::real_file;

namespace {

/// The largest difference between logits and reference.
double difference(Matrix logits, std::span<const double> reference) {
  double most = 0;
  for (Index i = 0; i < logits.cols; ++i)
    most = std::max(most, std::abs(static_cast<double>(logits.data[i]) - reference[static_cast<std::size_t>(i)]));
  return most;
}

std::vector<double> read_floats(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<double> numbers;
  for (float x = 0; file.read(reinterpret_cast<char*>(&x), sizeof x);) numbers.push_back(static_cast<double>(x));
  return numbers;
}

/// The state as rwkv.cpp lays it out, layer by layer: the channel mixer's token, the mixer's token, its memory
/// [H,K,V].
std::vector<double> rwkv_cpp_state(const ModelState& state) {
  std::vector<double> all;
  const auto append = [&](const Tensor& x) { all.insert(all.end(), x.span().begin(), x.span().end()); };
  for (std::size_t i = 0; i < state.layers.size(); i += 2) {
    append(state.layers[i + 1].real(0).value());
    const auto& leaves = state.layers[i].leaves();
    for (const StateLeaf& leaf : leaves)
      if (leaf.name == "x_prev") append(leaf.value.value());
    for (const StateLeaf& leaf : leaves)
      if (leaf.name != "x_prev") append(leaf.value.value());
  }
  return all;
}

/// The same with the memories transposed: [H,V,K].
std::vector<double> rwkv7_state(const ModelState& state) {
  std::vector<double> all = rwkv_cpp_state(state);
  const Shape& shape = state.layers[0].real(0).shape();
  const auto heads = static_cast<std::size_t>(shape[1]), width = static_cast<std::size_t>(shape[2]);
  const std::size_t square = width * width, layer = 2 * heads * width + heads * square;
  for (std::size_t at = 2 * heads * width; at < all.size(); at += layer)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = 0; i < width; ++i)
        for (std::size_t j = 0; j < i; ++j)
          std::swap(all[at + h * square + i * width + j], all[at + h * square + j * width + i]);
  return all;
}

struct Tiny {
  const char* model;
  const char* expected;
  const char* architecture;
  double bound;  // per logit
};

// RWKV-6 is there in Q5_1 only, its expected logits are of the float32 weights.
constexpr Tiny kTiny[] = {{"tiny-rwkv-4v0-660K-FP32.bin", "4v0-660K", "RWKV-4", 1e-4},
                          {"tiny-rwkv-5v2-730K-FP32.bin", "5v2-730K", "RWKV-5.2", 1e-4},
                          {"tiny-rwkv-6v0-3m-Q5_1.bin", "6v0-3m", "RWKV-6", 0.1},
                          {"tiny-rwkv-7v0-834K-FP32.bin", "7v0-834K", "RWKV-7", 1e-4}};

}  // namespace

TEST_CASE("rwkv.cpp's tiny models give their published logits") {
  const std::string folder = "checkpoints/rwkv.cpp/";
  for (const Tiny& tiny : kTiny) {
    const auto path = real_file(folder + tiny.model);
    const auto expected = real_file(folder + "expected-logits-" + tiny.expected + ".bin");
    if (!path || !expected) {
      MESSAGE("skipped: no " << std::string(tiny.model));
      continue;
    }
    INFO(std::string(tiny.model));
    const auto source = open_tensor_source(*path);
    const ImportedModel imported = import_model(*source);
    CHECK(imported.architecture == tiny.architecture);
    const std::vector<std::int32_t> tokens{'"', 'i', 'n'};
    const std::vector<double> reference = read_floats(*expected);
    REQUIRE(reference.size() == 256);
    const Tensor logits({1, 256});
    Scratch scratch;
    ModelState state = imported.model->initial_state(1);
    for (const std::int32_t token : tokens) imported.model->step(std::span(&token, 1), state, scratch, logits.matrix());
    CHECK(difference(logits.matrix(), reference) < tiny.bound);

    Tape tape(false);
    const Layout layout = Layout::plain(1, 3);
    ModelState fresh = imported.model->initial_state(1);
    const Var hidden = imported.model->forward(tape, tokens, {.layout = layout}, fresh);
    imported.model->logits_into(logits.matrix(), hidden.value().matrix().slice(2, 3));
    CHECK(difference(logits.matrix(), reference) < tiny.bound);
  }
}

TEST_CASE("rwkv.cpp's tiny models follow rwkv.cpp along a text, and so do their states") {
  for (const std::string name : {"4v0-660K", "5v2-730K", "7v0-834K"}) {
    const auto path = real_file("checkpoints/rwkv.cpp/tiny-rwkv-" + name + "-FP32.bin");
    const auto golden = real_file("../golden/rwkv_cpp_tiny_" + name.substr(0, 3) + "_fp32.h5");
    if (!path || !golden) {
      MESSAGE("skipped: no numbers of " << name);
      continue;
    }
    const ImportedModel imported = import_model(*open_tensor_source(*path));
    const GoldenFile file(*golden);
    for (const std::string prompt : {"text", "bytes"}) {
      INFO(name << " " << prompt);
      const GoldenCase reference = file.at(prompt);
      const GoldenTensor tokens = reference.tensor("tokens"), rows = reference.tensor("logits");
      const Tensor logits({1, 256});
      Scratch scratch;
      ModelState state = imported.model->initial_state(1);
      double most = 0;
      for (std::size_t t = 0; t < tokens.values.size(); ++t) {
        const auto token = static_cast<std::int32_t>(tokens.values[t]);
        imported.model->step(std::span(&token, 1), state, scratch, logits.matrix());
        most = std::max(most, difference(logits.matrix(), std::span(rows.values).subspan(256 * t, 256)));
      }
      CHECK(most < 1e-4);
      const std::vector<double> ours = name[0] == '7' ? rwkv7_state(state) : rwkv_cpp_state(state);
      const std::vector<double> theirs = reference.tensor("state_final").values;
      REQUIRE(ours.size() == theirs.size());
      double apart = 0, length = 0;
      for (std::size_t i = 0; i < ours.size(); ++i)
        apart += std::pow(ours[i] - theirs[i], 2), length += std::pow(theirs[i], 2);
      CHECK(std::sqrt(apart / length) < 1e-5);
    }
  }
}
