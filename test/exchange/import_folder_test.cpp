// RWKV as transformers (rwkv) and flash-linear-attention (rwkv7) store it.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "exchange/export_model.h"
#include "exchange/import_model.h"
#include "store/safetensors_writer.h"

using namespace quipu;
using quipu_test::TemporaryFolder;
using quipu_test::write_whole;

namespace {

struct Named {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> numbers;
};

Named transposed(const Named& x) {
  Named y{x.name, {x.shape[1], x.shape[0]}, std::vector<float>(x.numbers.size())};
  const auto rows = static_cast<std::size_t>(x.shape[0]), cols = static_cast<std::size_t>(x.shape[1]);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) y.numbers[j * rows + i] = x.numbers[i * cols + j];
  return y;
}

/// A random model, and a folder into which a test writes it as another program does.
class Folder {
 public:
  explicit Folder(const std::string& mixer, std::map<std::string, std::string> options = {}) {
    ModelConfig config;
    config.vocab = 19, config.dim = 12, config.layers = 2, config.heads = mixer == "rwkv4" ? 0 : 3;
    config.mixer = mixer;
    config.options = std::move(options);
    model = std::make_unique<LanguageModel>(config, false);
    model->parameters().initialise(5);
    for (const auto& entry : model->parameters().all())
      for (Real& x : entry.parameter->value().span()) x = static_cast<float>(x);
    export_model(*model, folder.path());
    const auto source = open_tensor_source(folder.path());
    for (const TensorInfo& tensor : source->tensors())
      published.push_back({tensor.name, tensor.shape, source->read(tensor.name)});
  }

  ImportedModel read(const std::vector<Named>& tensors, const std::string& config, const ImportOptions& options = {}) {
    std::vector<SafetensorsWriter::Tensor> heads;
    for (const Named& tensor : tensors) heads.push_back({tensor.name, tensor.shape});
    SafetensorsWriter writer(folder / "model.safetensors", heads, {});
    for (const Named& tensor : tensors) writer.write(tensor.numbers);
    writer.commit();
    write_whole(folder / "config.json", config);
    return import_model(*open_tensor_source(folder.path()), options);
  }
  bool same_parameters(const ImportedModel& imported) const {
    const auto ours = model->parameters().all(), theirs = imported.model->parameters().all();
    return std::ranges::equal(ours, theirs, [](const auto& a, const auto& b) {
      return a.name == b.name && std::ranges::equal(a.parameter->value().span(), b.parameter->value().span());
    });
  }

  TemporaryFolder folder;
  std::unique_ptr<LanguageModel> model;
  std::vector<Named> published;
};

void replace(std::string& text, const std::string& from, const std::string& to) {
  if (const std::size_t at = text.find(from); at != text.npos) text.replace(at, from.size(), to);
}

/// As transformers' converter names them.
std::vector<Named> rwkv4_tensors(const Folder& folder) {
  std::vector<Named> tensors = folder.published;
  for (Named& tensor : tensors) {
    replace(tensor.name, "emb.", "embeddings.");
    replace(tensor.name, "blocks.0.ln0", "blocks.0.pre_ln");
    replace(tensor.name, ".att.", ".attention.");
    replace(tensor.name, ".ffn.", ".feed_forward.");
    for (const std::string name : {"key", "value", "receptance"})
      if (tensor.name.ends_with("time_mix_" + name.substr(0, 1))) tensor.name += name.substr(1);
    if (tensor.name != "head.weight") tensor.name = "rwkv." + tensor.name;
  }
  return tensors;
}

constexpr const char* kRwkv4 = R"({"model_type": "rwkv", "vocab_size": 19, "hidden_size": 12, "num_hidden_layers": 2,
  "attention_hidden_size": 12, "intermediate_size": 48, "layer_norm_epsilon": 1e-05, "rescale_every": 6,
  "context_length": 77, "tie_word_embeddings": false})";

/// As flash-linear-attention names them.
std::vector<Named> rwkv7_tensors(const Folder& folder) {
  std::vector<Named> tensors;
  for (Named tensor : folder.published) {
    std::string& name = tensor.name;
    const bool map = tensor.shape.size() == 2 && (name.ends_with("1") || name.ends_with("2"));
    if (map) tensor = transposed(tensor);
    if (name.ends_with(".k_k") || name.ends_with(".k_a") || name.ends_with("ffn.x_k") || name.ends_with("0"))
      tensor.shape = {12};
    replace(name, "emb.", "model.embeddings.");
    replace(name, "blocks.", "model.layers.");
    replace(name, ".ln0", ".pre_norm"), replace(name, ".ln1", ".attn_norm"), replace(name, ".ln2", ".ffn_norm");
    replace(name, "ln_out", "model.norm"), replace(name, "head.", "lm_head.");
    replace(name, ".att.ln_x", ".attn.g_norm");
    replace(name, ".att.", ".attn.");
    for (const std::string use : {"receptance", "key", "value", "output"})
      replace(name, ".attn." + use + ".", ".attn." + use.substr(0, 1) + "_proj.");
    for (const std::string use : {"w", "a", "v", "g"}) {
      replace(name, ".attn." + use + "0", ".attn." + use + "_lora.lora.2.bias");
      replace(name, ".attn." + use + "1", ".attn." + use + "_lora.lora.0.weight");
      replace(name, ".attn." + use + "2", ".attn." + use + "_lora.lora.2.weight");
    }
    tensors.push_back(tensor);
  }
  return tensors;
}

const char* const kRwkv7 = R"({"model_type": "rwkv7", "vocab_size": 19, "hidden_size": 12, "num_hidden_layers": 2,
  "head_dim": 4, "num_heads": null, "intermediate_size": 48, "norm_eps": 1e-05, "decay_low_rank_dim": 4,
  "a_low_rank_dim": 5, "v_low_rank_dim": 6, "gate_low_rank_dim": 7, "hidden_act": "sqrelu", "norm_first": true,
  "norm_bias": true, "attn": null, "value_dim": [12, 12], "tie_word_embeddings": false})";

std::string with(std::string config, const std::string& from, const std::string& to) {
  REQUIRE(config.find(from) != config.npos);
  replace(config, from, to);
  return config;
}

#define REFUSES(expression, text) CHECK_THROWS_WITH_AS(expression, doctest::Contains(text), InputError)

}  // namespace

TEST_CASE("transformers' RWKV-4 is the published one") {
  Folder folder("rwkv4");
  const std::vector<Named> tensors = rwkv4_tensors(folder);
  const ImportedModel imported = folder.read(tensors, kRwkv4);
  CHECK(imported.architecture == "RWKV-4");
  CHECK(folder.same_parameters(imported));
  CHECK(imported.model->config().length == 77);
  CHECK(
      std::ranges::any_of(imported.notes, [](const std::string& note) { return note.starts_with("rescale_every=6"); }));
  REFUSES(folder.read(tensors, with(kRwkv4, "\"hidden_size\": 12", "\"hidden_size\": 13")),
          "hidden_size=13, and its tensors 12");
  REFUSES(folder.read(tensors, with(kRwkv4, "attention_hidden_size\": 12", "attention_hidden_size\": 24")),
          "attention_hidden_size=24");
  REFUSES(folder.read(tensors, with(kRwkv4, "false", "true")), "tie_word_embeddings=true, and false is all");
  REFUSES(folder.read(tensors, kRwkv7), "it lacks model.layers.0.attn.k_k");
  std::vector<Named> torn = tensors;
  std::erase_if(torn, [](const Named& tensor) { return tensor.name == "rwkv.blocks.1.attention.time_decay"; });
  REFUSES(folder.read(torn, kRwkv4), "lacks the tensor rwkv.blocks.1.attention.time_decay");
  CHECK_THROWS_AS(folder.read(tensors, kRwkv4, {.groupnorm_eps = 1}), UsageError);
}

TEST_CASE("flash-linear-attention's RWKV-7 is the published one") {
  Folder folder("rwkv7", {{"rwkv7.decay_low_rank_dim", "4"},
                          {"rwkv7.a_low_rank_dim", "5"},
                          {"rwkv7.v_low_rank_dim", "6"},
                          {"rwkv7.gate_low_rank_dim", "7"}});
  std::vector<Named> tensors = rwkv7_tensors(folder);
  const ImportedModel imported = folder.read(tensors, kRwkv7);
  CHECK(imported.architecture == "RWKV-7");
  CHECK(folder.same_parameters(imported));
  CHECK(imported.model->config().options.at("rwkv7.groupnorm_eps") == "4e-05");  // 4 channels a head
  REFUSES(folder.read(tensors, with(kRwkv7, "\"attn\": null", "\"attn\": {\"layers\": [1]}")), "and null is all");
  REFUSES(folder.read(tensors, with(kRwkv7, "[12, 12]", "[12, 24]")), "value_dim=[12,24]");
  REFUSES(folder.read(tensors, with(kRwkv7, "\"head_dim\": 4", "\"head_dim\": 6")), "head_dim=6, and its tensors 4");
  REFUSES(folder.read(tensors, with(kRwkv7, "\"v_low_rank_dim\": 6", "\"v_low_rank_dim\": 5")), "v_low_rank_dim=5");
  // The first version had the shifts in one tensor.
  std::vector<Named> stacked;
  for (const std::string layer : {"0", "1"}) {
    Named all{"model.layers." + layer + ".attn.x_x", {6, 1, 1, 12}, {}};
    for (const std::string letter : {"r", "w", "k", "v", "a", "g"}) {
      const std::string name = "model.layers." + layer + ".attn.x_" + letter;
      const auto part = std::ranges::find(tensors, name, &Named::name);
      REQUIRE(part != tensors.end());
      all.numbers.insert(all.numbers.end(), part->numbers.begin(), part->numbers.end());
      tensors.erase(part);
    }
    stacked.push_back(all);
  }
  tensors.insert(tensors.end(), stacked.begin(), stacked.end());
  CHECK(folder.same_parameters(folder.read(tensors, kRwkv7)));
}
