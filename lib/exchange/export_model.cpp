#include "exchange/export_model.h"

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "exchange/hugging_face.h"
#include "exchange/rwkv_layout.h"
#include "exchange/tensor_transfer.h"
#include "store/safetensors_writer.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

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

std::string export_model(const LanguageModel& model, const std::string& folder) {
  const ModelConfig& config = model.config();
  const std::string tensors = folder + "/model.safetensors";
  if (const auto layout = rwkv_layout(config)) {
    Metadata metadata{{"format", "pt"}};
    if (const auto eps = config.options.find(config.mixer + "." + kGroupNormKey); eps != config.options.end())
      metadata.emplace_back(kGroupNormKey, eps->second);
    make_folder(folder);
    write_tensors(tensors, *layout, model, metadata);
    return config.mixer;
  }
  std::string why;
  const auto published = hugging_face_config(config, why);
  if (!published)
    throw UsageError("{}: no other program has such a model, because of {}; keep it as a checkpoint", folder, why);
  make_folder(folder);
  write_tensors(tensors, published->architecture->layout, model, {{"format", "pt"}});
  OutputFile file(folder + "/config.json");
  file.write(published->json.dump(2) + "\n");
  file.commit();
  return published->architecture->model_type;
}

}  // namespace quipu::inline QUIPU_REAL_NS
