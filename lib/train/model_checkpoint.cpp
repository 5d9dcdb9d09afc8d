#include "train/model_checkpoint.h"

#include <algorithm>
#include <deque>
#include <map>

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr const char* kSteps = "steps";

std::vector<Index> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

std::string shape_text(const std::vector<Index>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string carried_name(std::size_t layer, const StateLeaf& leaf) {
  return fmt::format("carried/{}/{}", layer, leaf.name);
}

/// Arrays as a file takes them; where Real is not float, it keeps the converted numbers.
class FileArrays {
 public:
  void add(std::string name, const Shape& shape, std::span<const float> values) {
    views_.push_back({std::move(name), extents(shape), values});
  }
  void add(std::string name, const Shape& shape, std::span<const double> values) {
    auto& copy = converted_.emplace_back(values.size());
    std::transform(values.begin(), values.end(), copy.begin(), [](double x) { return static_cast<float>(x); });
    add(std::move(name), shape, std::span<const float>(copy));
  }
  void add(std::string name, const Shape& shape, const PackedMatrix& packed) {
    views_.push_back({std::move(name), extents(shape), {}, packed.format(), packed.bytes()});
  }
  const std::vector<ArrayView>& views() const { return views_; }

 private:
  std::vector<ArrayView> views_;
  std::deque<std::vector<float>> converted_;
};

/// Calls read(span of float) so that the numbers arrive in `values`.
template <typename Read>
void read_real(std::span<Real> values, const Read& read) {
  if constexpr (std::is_same_v<Real, float>) {
    read(values);
  } else {
    std::vector<float> numbers(values.size());
    read(std::span<float>(numbers));
    std::copy(numbers.begin(), numbers.end(), values.begin());
  }
}

FileArrays parameter_arrays(const Parameters& parameters) {
  FileArrays arrays;
  for (const auto& entry : parameters.all()) {
    const Parameter& parameter = *entry.parameter;
    if (parameter.is_packed())
      arrays.add(entry.name, parameter.shape(), parameter.packed());
    else
      arrays.add(entry.name, parameter.shape(), parameter.value().span());
  }
  return arrays;
}

/// Throws unless the file's arrays are the wanted ones, by name and shape.
void require_arrays(const std::string& file, const char* what, const std::vector<ArrayShape>& stored,
                    const std::map<std::string, Shape>& wanted) {
  std::map<std::string, const ArrayShape*> have;
  for (const ArrayShape& array : stored) have[array.name] = &array;
  for (const auto& [name, shape] : wanted) {
    const auto found = have.find(name);
    if (found == have.end())
      throw InputError("{}: lacks the {} {} {}, which the model has; give a checkpoint of the same configuration", file,
                       what, name, shape.text());
    if (found->second->shape != extents(shape))
      throw InputError("{}: {} {} is {}, the model's is {}; give a checkpoint of the same configuration", file, what,
                       name, shape_text(found->second->shape), shape.text());
  }
  for (const ArrayShape& array : stored)
    if (!wanted.contains(array.name))
      throw InputError("{}: has a {} {} {}, which the model lacks; give a checkpoint of the same configuration", file,
                       what, array.name, shape_text(array.shape));
}

std::map<std::string, NumberFormat> formats_of(const CheckpointFile& file) {
  std::map<std::string, NumberFormat> formats;
  for (const ArrayShape& array : file.parameters()) formats[array.name] = array.format;
  return formats;
}

std::unique_ptr<LanguageModel> load_with(const CheckpointFile& file, bool gradients, const FormatChoice& format,
                                         const std::vector<std::string>& settings = {}) {
  try {
    ModelConfig config = config_from_json(file.facts().config);
    set_options(config, settings);
    auto model = std::make_unique<LanguageModel>(config, gradients, format);
    read_parameters(file, model->parameters());
    return model;
  } catch (const UsageError& error) {
    if (!settings.empty()) throw;
    // The file's fault, not that of the command line.
    throw InputError("{}: its configuration makes no model here ({}); was it made by another version?", file.name(),
                     error.what());
  }
}

/// Reads a matrix into place: as it is stored, or rounded, some rows at a time.
void read_packed(const CheckpointFile& file, const std::string& name, NumberFormat stored, const PackedMatrix& into) {
  if (stored == into.format()) return file.read_packed(name, into.bytes());
  std::vector<float> numbers(static_cast<std::size_t>(into.rows() * into.cols()));
  file.read_parameter(name, numbers);
  try {
    into.encode(0, numbers);
  } catch (const NumericError& error) {
    throw InputError("{}: parameter {} {}; keep it in f32", file.name(), name, error.what());
  }
}

}  // namespace

std::unique_ptr<LanguageModel> load_model(const CheckpointFile& file, bool gradients,
                                          const std::vector<std::string>& settings) {
  const auto stored = formats_of(file);
  const FormatChoice as_stored = [&](const std::string& name, const Parameter& parameter) {
    const auto found = stored.find(name);
    if (gradients || found == stored.end() || found->second == NumberFormat::f32) return NumberFormat::f32;
    if (!parameter.traits().matrix)
      throw InputError("{}: parameter {} is in {}, this one must be in f32; give a checkpoint of this version",
                       file.name(), name, format_name(found->second));
    return found->second;
  };
  return load_with(file, gradients, as_stored, settings);
}

std::unique_ptr<LanguageModel> load_model_as(const CheckpointFile& file, NumberFormat format) {
  return load_with(file, false, matrices_in(format));
}

std::unique_ptr<LanguageModel> load_model(const std::string& path, bool gradients) {
  return load_model(CheckpointFile(path), gradients);
}

void read_parameters(const CheckpointFile& file, Parameters& parameters) {
  std::map<std::string, Shape> wanted;
  for (const auto& entry : parameters.all()) wanted[entry.name] = entry.parameter->shape();
  require_arrays(file.name(), "parameter", file.parameters(), wanted);
  const auto stored = formats_of(file);
  for (const auto& entry : parameters.all())
    if (entry.parameter->is_packed())
      read_packed(file, entry.name, stored.at(entry.name), entry.parameter->packed());
    else
      read_real(entry.parameter->value().span(),
                [&](std::span<float> numbers) { file.read_parameter(entry.name, numbers); });
}

std::vector<ParameterGroup> optimizer_groups(const Parameters& parameters) {
  std::vector<ParameterGroup> groups;
  for (const auto& entry : parameters.trainable()) {
    const ParameterTraits& traits = entry.parameter->traits();
    // The few numbers between two parameters, which align them, are zero and stay zero.
    if (!groups.empty() && groups.back().decay == traits.decay && groups.back().lr_scale == traits.lr_scale)
      groups.back().end = entry.end;
    else
      groups.push_back({entry.begin, entry.end, traits.decay, traits.lr_scale});
  }
  return groups;
}

void read_optimizer(const CheckpointFile& file, const Parameters& parameters, Optimizer& optimizer) {
  const auto steps = std::find_if(file.facts().counters.begin(), file.facts().counters.end(),
                                  [](const auto& counter) { return counter.first == kSteps; });
  if (steps == file.facts().counters.end())
    throw InputError("{}: holds a model without its optimizer; start from its weights with --init", file.name());
  std::map<std::string, Shape> wanted;
  for (const auto& array : optimizer.state())
    for (const auto& entry : parameters.trainable())
      wanted[fmt::format("{}/{}", array.name, entry.name)] = entry.parameter->shape();
  std::vector<ArrayShape> stored = file.optimizer();
  std::erase_if(stored, [](const ArrayShape& array) { return array.name.starts_with("carried/"); });
  require_arrays(file.name(), "optimizer array", stored, wanted);
  for (const auto& array : optimizer.state())
    for (const auto& entry : parameters.trainable())
      read_real(array.values.subspan(static_cast<std::size_t>(entry.begin),
                                     static_cast<std::size_t>(entry.end - entry.begin)),
                [&](std::span<float> numbers) {
                  file.read_optimizer(fmt::format("{}/{}", array.name, entry.name), numbers);
                });
  optimizer.set_steps_taken(steps->second);
}

void read_carried_state(const CheckpointFile& file, ModelState& state) {
  for (std::size_t layer = 0; layer < state.layers.size(); ++layer)
    for (StateLeaf& leaf : state.layers[layer].leaves()) {
      if (leaf.is_integer()) continue;
      const std::string name = carried_name(layer, leaf);
      const auto& stored = file.optimizer();
      const auto found =
          std::find_if(stored.begin(), stored.end(), [&](const ArrayShape& array) { return array.name == name; });
      if (found == stored.end())
        throw InputError("{}: lacks the carried state {}; start afresh with --resume never", file.name(), name);
      // A growing cache is as long as the stream that it has read: the shape is the file's.
      Tensor value{Shape(std::span<const Index>(found->shape))};
      read_real(value.span(), [&](std::span<float> numbers) { file.read_optimizer(name, numbers); });
      leaf.value = Var(std::move(value));
    }
}

void save_model(const std::string& path, CheckpointFacts facts, Parameters& parameters, Optimizer* optimizer,
                const ModelState* carried) {
  const FileArrays arrays = parameter_arrays(parameters);
  FileArrays memory;
  if (optimizer != nullptr) {
    facts.counters = {{kSteps, optimizer->steps_taken()}};
    for (const auto& array : optimizer->state())
      for (const auto& entry : parameters.trainable())
        memory.add(fmt::format("{}/{}", array.name, entry.name), entry.parameter->shape(),
                   array.values.subspan(static_cast<std::size_t>(entry.begin),
                                        static_cast<std::size_t>(entry.end - entry.begin)));
  }
  if (carried != nullptr)
    for (std::size_t layer = 0; layer < carried->layers.size(); ++layer)
      for (const StateLeaf& leaf : carried->layers[layer].leaves())
        if (!leaf.is_integer()) memory.add(carried_name(layer, leaf), leaf.value.shape(), leaf.value.value().span());
  save_checkpoint(path, facts, arrays.views(), memory.views());
}

std::string digest_of(Parameters& parameters) { return parameter_digest(parameter_arrays(parameters).views()); }

}  // namespace quipu::inline QUIPU_REAL_NS
