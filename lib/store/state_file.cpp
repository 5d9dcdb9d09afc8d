#include "store/state_file.h"

namespace quipu {

namespace {

constexpr const char* kLeaves = "/leaves";
constexpr const char* kBlobs = "/blobs";

void write_leaf(H5Writer& file, const std::string& path, const SavedLeaf& leaf) {
  const H5Shape shape(leaf.shape.begin(), leaf.shape.end());
  std::visit([&](const auto& data) { file.write(path, std::span(data), shape); }, leaf.data);
}

SavedLeaf read_leaf(const H5Reader& file, const std::string& name) {
  const std::string path = fmt::format("{}/{}", kLeaves, name);
  const H5Entry& entry = file.entry(path);
  SavedLeaf leaf{name, {entry.shape.begin(), entry.shape.end()}, {}};
  if (entry.type == ElementType::kFloat64) {
    leaf.data = file.read<double>(path);
  } else if (entry.type == ElementType::kInt64) {
    leaf.data = file.read<std::int64_t>(path);
  } else {
    leaf.data = file.read<float>(path);
  }
  return leaf;
}

}  // namespace

void save_state(const std::string& path, const SavedState& state) {
  H5Writer file(path, kStateFormat);
  file.attribute("/", "parameter_digest", state.parameter_digest);
  file.attribute("/", "tokens", state.tokens);
  file.group(kLeaves);
  std::int64_t index = 0;
  for (const SavedLeaf& leaf : state.leaves) {
    const std::string leaf_path = fmt::format("{}/{}", kLeaves, leaf.name);
    write_leaf(file, leaf_path, leaf);
    file.attribute(leaf_path, "index", index++);
  }
  file.group(kBlobs);
  for (const auto& [name, bytes] : state.blobs) {
    const std::string blob_path = fmt::format("{}/{}", kBlobs, escape_name(name));
    file.write(blob_path, bytes);
    file.attribute(blob_path, "index", index++);
  }
  write_provenance(file, state.provenance);
  file.commit();
}

SavedState load_state(const std::string& path, const std::string& parameter_digest) {
  const H5Reader file(path, {kStateFormat});
  SavedState state;
  state.parameter_digest = file.text_attribute("/", "parameter_digest");
  if (state.parameter_digest != parameter_digest) {
    throw InputError(
        "{}: is the state of another model (its parameters' digest is {}, this model's {}); give the model "
        "that it was saved with",
        file.name(), state.parameter_digest, parameter_digest);
  }
  state.tokens = file.integer_attribute("/", "tokens");
  for (const std::string& name : file.data_sets(kLeaves)) state.leaves.push_back(read_leaf(file, name));
  for (const std::string& name : file.data_sets(kBlobs)) {
    state.blobs.emplace_back(unescape_name(name), file.read<std::uint8_t>(fmt::format("{}/{}", kBlobs, name)));
  }
  state.provenance = read_provenance(file);
  return state;
}

}  // namespace quipu
