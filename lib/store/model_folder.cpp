#include "store/model_folder.h"

#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "store/json_check.h"

namespace quipu {

namespace {

constexpr const char* kModelFiles[] = {"model.safetensors.index.json", "model.safetensors",
                                       "pytorch_model.bin.index.json", "pytorch_model.bin"};

constexpr const char* kCompanions[] = {"config.json",
                                       "generation_config.json",
                                       "tokenizer.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "tokenizer.model",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "rwkv_vocab_v20230424.txt"};

constexpr std::uint64_t kLongestConfig = std::uint64_t{4} << 20;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::string read_config(const std::string& path) {
  InputFile file(path);
  file.make_seekable();
  if (file.size() > kLongestConfig) {
    throw InputError("{}: has {} bytes, and {} are the most for a configuration; refused", path, file.size(),
                     kLongestConfig);
  }
  std::string text(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  JsonCheck check(path, "the configuration");
  check.parse(text);
  return text;
}

}  // namespace

std::string find_model_file(const std::string& folder) {
  for (const char* name : kModelFiles) {
    std::string path = folder + "/" + name;
    if (is_file(path)) return path;
  }
  throw InputError("{}: is a folder with none of {}, {}, {} and {}; give the file of the model's tensors", folder,
                   kModelFiles[0], kModelFiles[1], kModelFiles[2], kModelFiles[3]);
}

std::vector<std::string> model_folder_names() {
  std::vector<std::string> names(std::begin(kModelFiles), std::end(kModelFiles));
  names.insert(names.end(), std::begin(kCompanions), std::end(kCompanions));
  return names;
}

void add_companions(const std::string& folder, SourceMetadata& metadata) {
  for (const char* name : kCompanions) {
    const std::string path = folder + "/" + name;
    if (!is_file(path)) continue;
    if (name == kCompanions[0]) metadata.texts.emplace_back(name, read_config(path));
    metadata.companions.emplace_back(name, path);
  }
}

}  // namespace quipu
