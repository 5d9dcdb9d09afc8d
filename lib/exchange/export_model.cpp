#include "exchange/export_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "exchange/hugging_face.h"
#include "exchange/rwkv_layout.h"
#include "exchange/tensor_transfer.h"
#include "store/model_folder.h"
#include "store/safetensors_writer.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kTensors = "model.safetensors";

/// Nothing may be there that a reader of the folder would take for a part of the model.
void require_no_others(const std::string& folder, const std::vector<TokenizerFile>& texts) {
  for (const std::string& name : model_folder_names()) {
    std::error_code error;
    const bool written =
        name == kTensors || std::ranges::any_of(texts, [&](const auto& text) { return text.name == name; });
    if (!written && std::filesystem::exists(folder + "/" + name, error))
      throw InputError("{}: has {} of another model; name another folder, or remove it", folder, name);
  }
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder, error))
    throw InputError("{}: cannot be made a folder ({}); name another one", folder,
                     error ? error.message() : "there is a file of that name");
}

void write_tensors(const std::string& path, const TensorLayout& layout, const LanguageModel& model,
                   const Metadata& metadata) {
  const std::vector<Placement> placements = place_parameters(layout, model.parameters(), model.config().layers);
  std::vector<SafetensorsWriter::Tensor> tensors;
  for (const Placement& placement : placements)
    tensors.push_back({placement.published, {placement.shape.begin(), placement.shape.end()}});
  SafetensorsWriter writer(path, std::move(tensors), metadata);
  for (const Placement& placement : placements) writer.write(published_numbers(placement));
  writer.commit();
}

}  // namespace

std::string export_model(const LanguageModel& model, const std::string& folder,
                         const std::vector<TokenizerFile>& tokenizer) {
  const ModelConfig& config = model.config();
  Metadata metadata{{"format", "pt"}};
  std::vector<TokenizerFile> texts = tokenizer;
  std::string name = config.mixer;
  std::optional<TensorLayout> layout = rwkv_layout(config);
  if (layout) {
    if (const auto eps = config.options.find(config.mixer + "." + kGroupNormKey); eps != config.options.end())
      metadata.emplace_back(kGroupNormKey, eps->second);
  } else {
    std::string why;
    const auto published = hugging_face_config(config, why);
    if (!published)
      throw UsageError("{}: no other program has such a model, because of {}; keep it as a checkpoint", folder, why);
    layout = published->architecture->layout;
    name = published->architecture->model_type;
    texts.push_back({"config.json", published->json.dump(2) + "\n"});
  }
  require_no_others(folder, texts);
  make_folder(folder);
  write_tensors(folder + "/" + kTensors, *layout, model, metadata);
  for (const TokenizerFile& text : texts) {
    OutputFile file(folder + "/" + text.name);
    file.write(text.content);
    file.commit();
  }
  return name;
}

}  // namespace quipu::inline QUIPU_REAL_NS
