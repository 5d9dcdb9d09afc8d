#include "store/model_file.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace quipu {

namespace {

constexpr const char* kParameters = "/parameters";
constexpr const char* kOptimizer = "/optimizer";
constexpr const char* kNumberFormat = "number_format";
constexpr const char* kColumns = "columns";

/// A matrix in another format than float32 is a data set of bytes, a row for each of its rows, with two attributes.
H5Shape packed_shape(const ArrayView& array) {
  if (array.shape.size() != 2) throw InternalError("{}: {} axes in {}", array.name, array.shape.size(), kNumberFormat);
  const auto rows = static_cast<std::uint64_t>(array.shape[0]);
  const auto bytes = static_cast<std::uint64_t>(row_bytes(array.format, array.shape[1]));
  if (array.packed.size() != rows * bytes)
    throw ShapeError("{}: has {} bytes, its shape asks for {}", array.name, array.packed.size(), rows * bytes);
  return {rows, bytes};
}

std::map<std::string, H5Value> packed_attributes(const ArrayView& array) {
  return {{kNumberFormat, std::string(format_name(array.format))}, {kColumns, array.shape[1]}};
}

/// Name, shape and format of a stored array; throws where a packed one contradicts itself.
ArrayShape shape_of(const std::string& file, const std::string& name, const H5Entry& entry) {
  ArrayShape array{name, {entry.shape.begin(), entry.shape.end()}};
  const auto format = entry.attributes.find(kNumberFormat);
  if (format == entry.attributes.end()) return array;
  const auto* text = std::get_if<std::string>(&format->second);
  const auto columns = entry.attributes.find(kColumns);
  const auto* width = columns == entry.attributes.end() ? nullptr : std::get_if<std::int64_t>(&columns->second);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto known =
      std::ranges::find_if(kNumberFormats, [&](NumberFormat f) { return text && format_name(f) == *text; });
  if (known == std::end(kNumberFormats) || *known == NumberFormat::f32)
    throw InputError("{}: {} is in the number format {}, which this build does not know; use a newer quipu", file, name,
                     text != nullptr ? *text : "of no name");
  if (entry.type != ElementType::kUInt8 || entry.shape.size() != 2 || width == nullptr || *width < 1 ||
      *width > kMost || entry.shape[1] != static_cast<std::uint64_t>(row_bytes(*known, *width)))
    throw InputError("{}: {} in {} has rows of {} bytes, {} columns take {}; the file is damaged", file, name, *text,
                     entry.shape.empty() ? 0 : entry.shape.back(), width != nullptr ? *width : 0,
                     width != nullptr && *width > 0 && *width <= kMost ? row_bytes(*known, *width) : 0);
  array.shape.back() = *width;
  array.format = *known;
  return array;
}

void write_arrays(H5Writer& file, const std::string& group, const std::vector<ArrayView>& arrays) {
  file.group(group);
  std::int64_t index = 0;
  for (const ArrayView& array : arrays) {
    const std::string path = group + "/" + array.name;
    if (array.format == NumberFormat::f32) {
      file.write(path, array.data, H5Shape(array.shape.begin(), array.shape.end()));
    } else {
      const std::span<const std::byte> rows = array.packed;
      file.write(path, std::span(reinterpret_cast<const std::uint8_t*>(rows.data()), rows.size()), packed_shape(array));
      for (const auto& [name, value] : packed_attributes(array)) file.attribute(path, name, value);
    }
    file.attribute(path, "index", index++);
  }
}

std::vector<ArrayShape> shapes_below(const H5Reader& file, const std::string& group) {
  std::vector<ArrayShape> shapes;
  for (const std::string& name : file.data_sets(group)) {
    shapes.push_back(shape_of(file.name(), name, file.entry(group + "/" + name)));
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

Index ArrayShape::bytes() const {
  return format == NumberFormat::f32 ? elements() * static_cast<Index>(sizeof(float))
                                     : shape[0] * row_bytes(format, shape[1]);
}

std::string parameter_digest(const std::vector<ArrayView>& parameters) {
  H5Catalogue catalogue;
  for (const ArrayView& array : parameters) {
    if (array.format != NumberFormat::f32) {
      H5Entry packed{ElementType::kUInt8, packed_shape(array), packed_attributes(array)};
      packed.attributes[kH5DigestAttribute] = data_digest(*packed.type, packed.shape, array.packed).hex();
      catalogue[fmt::format("{}/{}", kParameters, array.name)] = std::move(packed);
      continue;
    }
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
  const std::string path = fmt::format("{}/{}", kParameters, name);
  const auto array = std::ranges::find(parameters_, name, &ArrayShape::name);
  if (array == parameters_.end() || array->format == NumberFormat::f32) return file_->read_into(path, data);
  if (static_cast<Index>(data.size()) != array->elements())
    throw InputError("{}: {} has {} elements, not {}", this->name(), name, array->elements(), data.size());
  const auto columns = static_cast<std::size_t>(array->shape[1]);
  const auto bytes = static_cast<std::size_t>(row_bytes(array->format, array->shape[1]));
  const std::size_t together = std::max<std::size_t>(1, (std::size_t{1} << 20) / bytes);
  std::vector<std::uint8_t> rows(together * bytes);
  for (std::size_t first = 0; first * columns < data.size(); first += together) {
    const std::size_t count = std::min(together, data.size() / columns - first);
    file_->read_rows(path, first, std::span(rows).first(count * bytes));
    for (std::size_t r = 0; r < count; ++r)
      decode_row(array->format, std::as_bytes(std::span(rows)).subspan(r * bytes, bytes),
                 data.subspan((first + r) * columns, columns));
  }
}

void CheckpointFile::read_packed(const std::string& name, std::span<std::byte> data) const {
  file_->read_into(fmt::format("{}/{}", kParameters, name),
                   std::span(reinterpret_cast<std::uint8_t*>(data.data()), data.size()));
}

std::string CheckpointFile::formats_text() const {
  std::set<NumberFormat> formats;
  for (const ArrayShape& array : parameters_) formats.insert(array.format);
  std::string text;
  for (const NumberFormat format : formats)
    text += fmt::format("{}{}", text.empty() ? "" : " and ", format_name(format));
  return text;
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
