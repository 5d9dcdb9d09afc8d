#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "exchange/import_model.h"

using namespace quipu;
using quipu_test::TemporaryFolder;
using quipu_test::write_whole;

namespace {

/// A file as rwkv.cpp's converter writes it.
class Ggmf {
 public:
  Ggmf(std::int32_t vocab, std::int32_t dim, std::int32_t layers) {
    for (const std::int32_t number : {0x67676d66, 101, vocab, dim, layers, 0}) add(number);
  }
  void tensor(const std::string& name, const std::vector<std::int32_t>& shape, const std::vector<float>& numbers) {
    add(static_cast<std::int32_t>(shape.size()));
    add(static_cast<std::int32_t>(name.size()));
    add(0);
    for (auto axis = shape.rbegin(); axis != shape.rend(); ++axis) add(*axis);
    bytes_ += name;
    bytes_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void add(std::int32_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  std::string bytes_;
};

std::vector<float> numbers_of(const Parameter& parameter, double (*f)(double) = nullptr) {
  std::vector<float> numbers;
  for (const Real x : parameter.value().span())
    numbers.push_back(static_cast<float>(f == nullptr ? static_cast<double>(x) : f(static_cast<double>(x))));
  return numbers;
}

/// RWKV-5.1 in rwkv.cpp's form: decays as e^{-e^x}, bonuses as e^x, one a head.
std::string rwkv51_file(LanguageModel& model, double decay_of_first = -1) {
  Ggmf file(19, 12, 1);
  const std::map<std::string, std::string> prefixes{{"embedding.", "emb."},
                                                    {"embedding_norm.", "blocks.0.ln0."},
                                                    {"layers.0.mixer_norm.", "blocks.0.ln1."},
                                                    {"layers.0.channel_norm.", "blocks.0.ln2."},
                                                    {"layers.0.mixer.", "blocks.0.att."},
                                                    {"layers.0.channel.", "blocks.0.ffn."},
                                                    {"norm.", "ln_out."},
                                                    {"head.", "head."}};
  for (const auto& entry : model.parameters().all()) {
    std::string name = entry.name;
    for (const auto& [ours, theirs] : prefixes)
      if (entry.name.starts_with(ours)) name = theirs + entry.name.substr(ours.size());
    std::vector<std::int32_t> shape;
    for (const Index extent : entry.parameter->shape())
      if (extent != 1) shape.push_back(static_cast<std::int32_t>(extent));
    std::vector<float> numbers = numbers_of(*entry.parameter);
    if (name.ends_with("time_decay")) {
      numbers = numbers_of(*entry.parameter, [](double x) { return std::exp(-std::exp(x)); });
      if (decay_of_first >= 0) numbers[0] = static_cast<float>(decay_of_first);
      shape = {3, 1, 1};
    } else if (name.ends_with("time_first")) {
      numbers = numbers_of(*entry.parameter, [](double x) { return std::exp(x); });
      shape = {3, 1, 1};
    }
    file.tensor(name, shape, numbers);
  }
  return file.bytes();
}

std::unique_ptr<LanguageModel> rwkv51() {
  ModelConfig config;
  config.vocab = 19, config.dim = 12, config.layers = 1, config.heads = 3;
  config.mixer = "rwkv5";
  config.options = {{"rwkv5.version", "5.1"}};
  auto model = std::make_unique<LanguageModel>(config, false);
  model->parameters().initialise(11);
  return model;
}

}  // namespace

TEST_CASE("rwkv.cpp's numbers of RWKV-5.1 become the published ones again") {
  const TemporaryFolder folder;
  const auto model = rwkv51();
  write_whole(folder / "model.bin", rwkv51_file(*model));
  const ImportedModel imported = import_model(*open_tensor_source(folder / "model.bin"));
  CHECK(imported.architecture == "RWKV-5.1");
  CHECK(imported.model->config().heads == 3);
  CHECK(imported.model->config().options.at("rwkv5.groupnorm_eps") == "1e-05");
  const auto ours = model->parameters().all(), theirs = imported.model->parameters().all();
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    INFO(ours[i].name);
    REQUIRE(ours[i].name == theirs[i].name);
    const auto a = ours[i].parameter->value().span(), b = theirs[i].parameter->value().span();
    REQUIRE(a.size() == b.size());
    for (std::size_t j = 0; j < a.size(); ++j)
      CHECK(static_cast<double>(b[j]) == doctest::Approx(static_cast<double>(a[j])).epsilon(1e-4));
  }
}

TEST_CASE("decays of exactly 0 and 1 stay what they are; others outside are refused") {
  const TemporaryFolder folder;
  const auto model = rwkv51();
  for (const double decay : {0.0, 1.0}) {
    write_whole(folder / "model.bin", rwkv51_file(*model, decay));
    const ImportedModel imported = import_model(*open_tensor_source(folder / "model.bin"));
    for (const auto& entry : imported.model->parameters().all())
      if (entry.name.ends_with("time_decay")) {
        const auto x = static_cast<float>(entry.parameter->value().data()[0]);
        CHECK(std::isfinite(x));
        CHECK(std::exp(-std::exp(x)) == doctest::Approx(decay).epsilon(1e-38));
      }
  }
  write_whole(folder / "model.bin", rwkv51_file(*model, 1.5));
  CHECK_THROWS_WITH_AS(import_model(*open_tensor_source(folder / "model.bin")),
                       doctest::Contains("blocks.0.att.time_decay has the number 1.5, which is no e^(-e^x)"),
                       InputError);
}
