#include "store/describe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>

#include "store/dataset_file.h"
#include "store/model_file.h"
#include "store/profile_file.h"
#include "store/state_file.h"

namespace quipu {

namespace {

void add_fact(FileDescription& about, std::string name, FileFact fact) {
  about.facts.emplace_back(std::move(name), std::move(fact));
}

void describe_dataset(FileDescription& about, std::shared_ptr<const H5Reader> file) {
  const Dataset dataset(std::move(file));
  add_fact(about, "tokenizer", dataset.tokenizer().kind);
  add_fact(about, "vocab", dataset.vocab());
  add_fact(about, "content_digest", dataset.digest());
  for (const std::string& name : dataset.split_names()) {
    const Split& split = dataset.split(name);
    add_fact(about, name + "_tokens", split.tokens());
    if (split.is_scored()) {
      add_fact(about, name + "_examples", split.examples());
      add_fact(about, name + "_length", split.length());
    } else {
      add_fact(about, name + "_documents", split.documents());
    }
    add_fact(about, name + "_words", static_cast<std::int64_t>(split.words()));
    add_fact(about, name + "_bytes", static_cast<std::int64_t>(split.bytes()));
  }
}

void describe_checkpoint(FileDescription& about, std::shared_ptr<const H5Reader> file) {
  const CheckpointFile checkpoint(std::move(file));
  std::int64_t parameters = 0, bytes = 0;
  std::map<NumberFormat, std::int64_t> bytes_in;
  for (const ArrayShape& array : checkpoint.parameters()) {
    parameters += array.elements();
    bytes += array.bytes(), bytes_in[array.format] += array.bytes();
    if (array.format == NumberFormat::f32) continue;
    for (auto& [path, type] : about.contents)  // of rows of bytes, what they are
      if (path == "/parameters/" + array.name)
        type = fmt::format("{} [{}]", format_name(array.format), fmt::join(array.shape, ", "));
  }
  std::int64_t moments = 0;
  for (const ArrayShape& array : checkpoint.optimizer()) moments += array.elements();
  add_fact(about, "tokenizer", checkpoint.facts().tokenizer.kind);
  add_fact(about, "parameters", parameters);
  add_fact(about, "number_formats", checkpoint.formats_text());
  add_fact(about, "parameter_bytes", bytes);
  if (bytes_in.size() > 1)
    for (const auto& [format, own] : bytes_in) add_fact(about, fmt::format("{}_bytes", format_name(format)), own);
  add_fact(about, "arrays", static_cast<std::int64_t>(checkpoint.parameters().size()));
  add_fact(about, "optimizer_numbers", moments);
  add_fact(about, "parameter_digest", checkpoint.parameter_digest());
  about.texts.emplace_back("config", checkpoint.facts().config);
  if (!checkpoint.facts().progress.empty()) about.texts.emplace_back("progress", checkpoint.facts().progress);
}

void describe_state(FileDescription& about, const H5Reader& file) {
  std::uint64_t bytes = 0;
  const std::vector<std::string> leaves = file.data_sets("/leaves");
  for (const std::string& name : leaves) bytes += file.entry("/leaves/" + name).bytes();
  add_fact(about, "tokens", file.integer_attribute("/", "tokens"));
  add_fact(about, "leaves", static_cast<std::int64_t>(leaves.size()));
  add_fact(about, "state_bytes", static_cast<std::int64_t>(bytes));
  add_fact(about, "parameter_digest", file.text_attribute("/", "parameter_digest"));
}

void describe_profile(FileDescription& about, const H5Reader& file) {
  const Profile profile = read_profile(file);
  std::vector<std::string> mixers;
  for (const ProfileRow& row : profile.rows)
    if (std::ranges::find(mixers, row.mixer) == mixers.end()) mixers.push_back(row.mixer);
  add_fact(about, "rows", std::ssize(profile.rows));
  add_fact(about, "measured", std::ranges::count_if(profile.rows, &ProfileRow::measured));
  add_fact(about, "mixers", fmt::format("{}", fmt::join(mixers, ", ")));
  if (!profile.rows.empty()) add_fact(about, "mode", profile.rows.front().mode);
  add_fact(about, "products", profile.products);
  add_fact(about, "simd_target", profile.simd_target);
}

/// "12 f32, 3 q8_0", the most frequent first.
std::string types_of(const TensorList& tensors) {
  std::map<TensorType, std::int64_t> counts;
  for (const TensorInfo& tensor : tensors) ++counts[tensor.type];
  std::vector<std::pair<std::int64_t, TensorType>> sorted;
  for (const auto& [type, count] : counts) sorted.emplace_back(-count, type);
  std::ranges::sort(sorted);
  std::vector<std::string> parts;
  for (const auto& [count, type] : sorted) parts.push_back(fmt::format("{} {}", -count, tensor_type_name(type)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

FileFact metadata_fact(const MetadataValue& value) {
  if (const auto* array = std::get_if<MetadataArray>(&value)) return fmt::format("a list of {}", array->size());
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* yes = std::get_if<bool>(&value)) return *yes;
  return std::get<double>(value);
}

FileDescription describe_tensors(const TensorSource& source, bool verify) {
  FileDescription about;
  about.format = source.format();
  about.file_bytes = source.file_bytes();
  about.tensors = source.tensors();
  std::uint64_t parameters = 0;
  for (const TensorInfo& tensor : source.tensors()) {
    parameters += tensor.elements();
    if (verify) source.read(tensor.name);
  }
  add_fact(about, "parameters", static_cast<std::int64_t>(parameters));
  add_fact(about, "tensor_count", static_cast<std::int64_t>(source.tensors().size()));
  add_fact(about, "tensor_types", types_of(source.tensors()));
  for (const auto& [key, value] : source.metadata().values) about.metadata.emplace_back(key, metadata_fact(value));
  if (source.metadata().left_out > 0) {
    add_fact(about, "metadata_left_out", static_cast<std::int64_t>(source.metadata().left_out));
  }
  for (const auto& [name, text] : source.metadata().texts) about.texts.emplace_back(name, text);
  for (const auto& [name, path] : source.metadata().companions) add_fact(about, "beside_" + name, path);
  return about;
}

FileDescription describe_hdf5(InputFile input, bool verify) {
  const auto file = std::make_shared<const H5Reader>(
      std::move(input), std::vector{kDatasetFormat, kCheckpointFormat, kStateFormat, kProfileFormat});
  if (verify) file->verify();
  FileDescription about;
  about.format = file->format();
  about.version = file->version();
  about.created_by = file->created_by();
  about.created = file->created();
  about.digest = file->digest();
  about.file_bytes = file->file_bytes();
  about.provenance = read_provenance(*file);
  for (const std::string& name : file->data_sets("/")) {
    const H5Entry& entry = file->entry("/" + name);
    about.contents.emplace_back("/" + name,
                                fmt::format("{} [{}]", element_name(*entry.type), fmt::join(entry.shape, ", ")));
  }
  std::ranges::sort(about.contents);
  if (about.format == kDatasetFormat.name) describe_dataset(about, file);
  if (about.format == kCheckpointFormat.name) describe_checkpoint(about, file);
  if (about.format == kStateFormat.name) describe_state(about, *file);
  if (about.format == kProfileFormat.name) describe_profile(about, *file);
  return about;
}

}  // namespace

FileDescription describe_file(const std::string& path, bool verify) {
  std::error_code ignored;
  if (path != "-" && std::filesystem::is_directory(path, ignored)) {
    return describe_tensors(*open_tensor_source(path), verify);
  }
  InputFile input(path);
  if (input.is_hdf5()) return describe_hdf5(std::move(input), verify);
  return describe_tensors(*open_tensor_source(std::move(input), path), verify);
}

}  // namespace quipu
