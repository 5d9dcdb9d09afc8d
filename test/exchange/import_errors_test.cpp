#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "exchange/export_model.h"
#include "exchange/import_model.h"
#include "store/safetensors_writer.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;
using quipu_test::write_whole;

namespace {

using Tensor32 = std::pair<SafetensorsWriter::Tensor, std::vector<float>>;
using Tensors = std::vector<Tensor32>;

Tensors tensors_of(const std::string& path) {
  Tensors all;
  const auto source = open_tensor_source(path);
  for (const TensorInfo& tensor : source->tensors())
    all.push_back({{tensor.name, tensor.shape}, source->read(tensor.name)});
  return all;
}

void write_tensors(const std::string& path, const Tensors& tensors) {
  std::vector<SafetensorsWriter::Tensor> heads;
  for (const auto& [head, numbers] : tensors) heads.push_back(head);
  SafetensorsWriter writer(path, heads, {});
  for (const auto& [head, numbers] : tensors) writer.write(numbers);
  writer.commit();
}

Tensor32& named(Tensors& tensors, const std::string& name) {
  return *std::ranges::find(tensors, name, [](const Tensor32& tensor) { return tensor.first.name; });
}

void drop(Tensors& tensors, const std::string& name) {
  std::erase_if(tensors, [&](const Tensor32& tensor) { return tensor.first.name == name; });
}

/// A small published model in a folder, which a test changes before it reads it.
class Published {
 public:
  explicit Published(const std::string& mixer, std::map<std::string, std::string> options = {},
                     const char* preset = "") {
    ModelConfig config;
    config.vocab = 19, config.dim = 12, config.layers = 2, config.heads = 3, config.length = 11;
    config.mixer = mixer;
    if (*preset != '\0') apply_preset(config, preset);
    config.options.merge(options);
    model = std::make_unique<LanguageModel>(config, false);
    model->parameters().initialise(5);
    export_model(*model, folder.path());
    tensors = tensors_of(folder.path());
  }

  ImportedModel read(const ImportOptions& options = {}) {
    write_tensors(folder / "model.safetensors", tensors);
    return import_model(*open_tensor_source(folder.path()), options);
  }
  void set(const std::string& from, const std::string& to) {
    std::string config = read_whole(folder / "config.json");
    const std::size_t at = config.find(from);
    REQUIRE(at != std::string::npos);
    write_whole(folder / "config.json", config.replace(at, from.size(), to));
  }

  TemporaryFolder folder;
  std::unique_ptr<LanguageModel> model;
  Tensors tensors;
};

bool notes_say(const ImportedModel& imported, const std::string& text) {
  return std::ranges::any_of(imported.notes, [&](const std::string& note) { return note.find(text) != note.npos; });
}

#define REFUSES(expression, text) CHECK_THROWS_WITH_AS(expression, doctest::Contains(text), InputError)

}  // namespace

TEST_CASE("the tensors of a file must be those of its model") {
  Published gsa("gsa", {{"gsa.slots", "5"}});
  const Tensors whole = gsa.tensors;
  drop(gsa.tensors, "model.layers.1.attn.f_proj.weight");
  REFUSES(gsa.read(), "lacks the tensor model.layers.1.attn.f_proj.weight [15, 12]");
  gsa.tensors = whole;
  named(gsa.tensors, "model.layers.1.attn.q_proj.weight") = {{"model.layers.1.attn.q_proj.weight", {9, 16}},
                                                             std::vector<float>(144)};
  REFUSES(gsa.read(), "q_proj.weight is f32 [9, 16], and [12, 12] is what its model has");
  gsa.tensors = whole;
  gsa.tensors.push_back({{"model.layers.1.attn.surprise", {2}}, {1, 2}});
  REFUSES(gsa.read(), "has 1 tensors that the model has no place for, model.layers.1.attn.surprise f32 [2]");
  CHECK(notes_say(gsa.read({.skip_unknown = true}), "not used: model.layers.1.attn.surprise"));
}

TEST_CASE("a configuration is read to the letter") {
  Published gla("gla", {{"gla.norm_eps", "1e-05"}});
  CHECK(gla.read().notes.empty());
  gla.set("\"feature_map\": null", "\"feature_map\": \"relu\"");
  REFUSES(gla.read(), "says feature_map=\"relu\", and null is all that gla can have");
  gla.set("\"feature_map\": \"relu\"", "\"news\": 1");
  CHECK(notes_say(gla.read(), "config.json: not used: news"));
  gla.set("\"num_heads\": 3", "\"num_heads\": 3.5");
  REFUSES(gla.read(), "says num_heads=3.5, which is no whole number");
  gla.set("\"num_heads\": 3.5", "\"num_heads\": 5");
  REFUSES(gla.read(), "its sizes make no model here");
  gla.set("\"num_heads\": 5", "\"num_heads\": 3");
  gla.set("\"hidden_size\": 12", "\"hidden_size\": 1000000000");
  REFUSES(gla.read(), "says hidden_size=1000000000");
  gla.set("\"hidden_size\": 1000000000", "\"hidden_size\": 24");
  REFUSES(gla.read(), "model.embeddings.weight is f32 [19, 12], and its config.json says [19, 24]");
  gla.set("\"model_type\": \"gla\"", "\"model_type\": \"bert\"");
  REFUSES(gla.read(), "says model_type=\"bert\", which is not known here; there are rwkv, rwkv7, gpt2, llama");
}

TEST_CASE("GPT-2's files are read with and without a prefix, a mask and a head") {
  Published gpt2("attention", {}, "gpt2");
  gpt2.tensors.push_back({{"lm_head.weight", {19, 12}}, named(gpt2.tensors, "transformer.wte.weight").second});
  gpt2.tensors.push_back({{"transformer.h.0.attn.bias", {1, 1, 2, 2}}, {1, 0, 1, 1}});
  const ImportedModel imported = gpt2.read();
  CHECK(notes_say(imported, "lm_head.weight: repeats the embedding"));
  CHECK(notes_say(imported, "transformer.h.0.attn.bias: the mask"));
  named(gpt2.tensors, "lm_head.weight").second[3] += 1;
  REFUSES(gpt2.read(), "lm_head.weight should repeat transformer.wte.weight, and does not");
  drop(gpt2.tensors, "lm_head.weight");
  for (auto& [head, numbers] : gpt2.tensors) head.name.erase(0, std::string("transformer.").size());
  const ImportedModel bare = gpt2.read();
  const auto ours = gpt2.model->parameters().all(), theirs = bare.model->parameters().all();
  for (std::size_t i = 0; i < ours.size(); ++i)
    CHECK(std::ranges::equal(ours[i].parameter->value().span(), theirs[i].parameter->value().span(),
                             [](Real a, Real b) { return static_cast<float>(a) == static_cast<float>(b); }));
}

TEST_CASE("what RWKV-7's first layer has no use for is named") {
  Published rwkv("rwkv7");
  for (const char* name : {"v0", "v1", "v2"})
    rwkv.tensors.push_back({{std::string("blocks.0.att.") + name, {1, 1, 12}}, std::vector<float>(12)});
  CHECK(notes_say(rwkv.read(), "blocks.0.att.v0 and 2 more: the first layer's values are its own"));
  const ImportedModel imported = rwkv.read({.groupnorm_eps = 0.5, .skip_unknown = false});
  CHECK(imported.model->config().options.at("rwkv7.groupnorm_eps") == "0.5");
  CHECK(notes_say(imported, "epsilon of the heads' norm: 0.5, as --groupnorm-eps says"));
  drop(rwkv.tensors, "blocks.1.ln1.weight");
  REFUSES(rwkv.read(), "tensors that the model has no place for, blocks.1.");
}
