#include "store/model_file.h"

namespace quipu {

namespace {

constexpr const char* kParameters = "/parameters";
constexpr const char* kOptimizer = "/optimizer";

void write_arrays(H5Writer& file, const std::string& group, const std::vector<ArrayView>& arrays) {
  file.group(group);
  std::int64_t index = 0;
  for (const ArrayView& array : arrays) {
    const std::string path = group + "/" + array.name;
    file.write(path, array.data, H5Shape(array.shape.begin(), array.shape.end()));
    file.attribute(path, "index", index++);
  }
}

std::vector<ArrayShape> shapes_below(const H5Reader& file, const std::string& group) {
  std::vector<ArrayShape> shapes;
  for (const std::string& name : file.data_sets(group)) {
    const H5Shape& shape = file.entry(group + "/" + name).shape;
    shapes.push_back({name, {shape.begin(), shape.end()}});
  }
  return shapes;
}

std::vector<std::pair<std::string, std::int64_t>> counters_of(const H5Reader& file) {
  std::vector<std::pair<std::string, std::int64_t>> counters;
  if (!file.has(kOptimizer)) return counters;
  for (const auto& [name, value] : file.entry(kOptimizer).attributes) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) counters.emplace_back(name, *number);
  }
  return counters;
}

template <typename Read>
std::vector<NamedArray> read_all(const std::vector<ArrayShape>& shapes, const Read& read) {
  std::vector<NamedArray> arrays;
  for (const ArrayShape& shape : shapes) {
    arrays.push_back({shape.name, shape.shape, std::vector<float>(static_cast<std::size_t>(shape.elements()))});
    read(shape.name, std::span<float>(arrays.back().data));
  }
  return arrays;
}

}  // namespace

std::vector<ArrayView> views_of(const std::vector<NamedArray>& arrays) {
  std::vector<ArrayView> views;
  for (const NamedArray& array : arrays) views.push_back({array.name, array.shape, array.data});
  return views;
}

Index ArrayShape::elements() const {
  Index n = 1;
  for (const Index extent : shape) n *= extent;
  return n;
}

std::string parameter_digest(const std::vector<ArrayView>& parameters) {
  H5Catalogue catalogue;
  for (const ArrayView& array : parameters) {
    H5Entry entry{ElementType::kFloat32, {array.shape.begin(), array.shape.end()}, {}};
    if (entry.elements() != array.data.size()) {
      throw ShapeError("{}: has {} elements, its shape asks for {}", array.name, array.data.size(), entry.elements());
    }
    entry.attributes[kH5DigestAttribute] = data_digest(*entry.type, entry.shape, std::as_bytes(array.data)).hex();
    catalogue[fmt::format("{}/{}", kParameters, array.name)] = std::move(entry);
  }
  return subtree_digest(catalogue, kParameters).hex();
}

void save_checkpoint(const std::string& path, const CheckpointFacts& facts, const std::vector<ArrayView>& parameters,
                     const std::vector<ArrayView>& optimizer) {
  H5Writer file(path, kCheckpointFormat);
  file.write_text("/config", facts.config);
  write_tokenizer(file, "/tokenizer", facts.tokenizer);
  write_arrays(file, kParameters, parameters);
  file.attribute(kParameters, "parameter_digest", subtree_digest(file.catalogue(), kParameters).hex());
  if (!optimizer.empty() || !facts.counters.empty()) {
    write_arrays(file, kOptimizer, optimizer);
    for (const auto& [name, value] : facts.counters) file.attribute(kOptimizer, name, value);
  }
  if (!facts.progress.empty()) file.write_text("/progress", facts.progress);
  write_provenance(file, facts.provenance);
  file.commit();
}

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  save_checkpoint(path, checkpoint.facts, views_of(checkpoint.parameters), views_of(checkpoint.optimizer));
}

CheckpointFile::CheckpointFile(const std::string& path) : CheckpointFile(InputFile(path)) {}

CheckpointFile::CheckpointFile(InputFile input)
    : CheckpointFile(std::make_shared<const H5Reader>(std::move(input), std::vector{kCheckpointFormat})) {}

CheckpointFile::CheckpointFile(std::shared_ptr<const H5Reader> file)
    : file_(std::move(file)),
      parameters_(shapes_below(*file_, kParameters)),
      optimizer_(shapes_below(*file_, kOptimizer)),
      parameter_digest_(subtree_digest(file_->catalogue(), kParameters).hex()) {
  facts_.config = file_->read_text("/config");
  if (file_->has("/progress")) facts_.progress = file_->read_text("/progress");
  facts_.tokenizer = read_tokenizer(*file_, "/tokenizer");
  facts_.counters = counters_of(*file_);
  facts_.provenance = read_provenance(*file_);
}

void CheckpointFile::read_parameter(const std::string& name, std::span<float> data) const {
  file_->read_into(fmt::format("{}/{}", kParameters, name), data);
}

void CheckpointFile::read_optimizer(const std::string& name, std::span<float> data) const {
  file_->read_into(fmt::format("{}/{}", kOptimizer, name), data);
}

Checkpoint load_checkpoint(const std::string& path, CheckpointParts parts) {
  const CheckpointFile file(path);
  Checkpoint checkpoint;
  checkpoint.facts = file.facts();
  if (parts.parameters) {
    checkpoint.parameters = read_all(
        file.parameters(), [&](const std::string& name, std::span<float> data) { file.read_parameter(name, data); });
  }
  if (parts.optimizer) {
    checkpoint.optimizer = read_all(
        file.optimizer(), [&](const std::string& name, std::span<float> data) { file.read_optimizer(name, data); });
  }
  return checkpoint;
}

}  // namespace quipu
