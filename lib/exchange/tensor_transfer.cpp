#include "exchange/tensor_transfer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "store/byte_cursor.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

std::vector<Index> without_ones(std::vector<Index> shape) {
  std::erase(shape, 1);
  return shape;
}

std::vector<Index> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// The parameters on top of each other, in the rule's form.
Shape published_shape(const Placement& placement) {
  Shape shape = placement.parameters.front()->shape();
  for (const Parameter* other : std::span(placement.parameters).subspan(1)) {
    Shape rest = other->shape();
    shape[0] += rest[0];
    rest[0] = shape[0];
    if (!(rest == shape))
      throw InternalError("layout: {} stacks parameters of {} and {}", placement.published, shape.text(), rest.text());
  }
  if (placement.rule->form == Form::kRow) return {1, 1, shape.count()};
  if (placement.rule->form == Form::kTransposed) std::swap(shape[-1], shape[-2]);
  return shape;
}

/// Swaps the last two axes of numbers that are [.., rows, cols].
std::vector<float> transposed(const std::vector<float>& x, Index rows, Index cols) {
  std::vector<float> y(x.size());
  const auto r = static_cast<std::size_t>(rows), c = static_cast<std::size_t>(cols);
  for (std::size_t base = 0; base < x.size(); base += r * c)
    for (std::size_t i = 0; i < r; ++i)
      for (std::size_t j = 0; j < c; ++j) y[base + j * r + i] = x[base + i * c + j];
  return y;
}

/// The rows of each head in our order: the first of all pairs, then the second of all.
std::vector<float> unpaired(const std::vector<float>& x, Index rows, Index head_rows) {
  if (head_rows < 2 || head_rows % 2 != 0 || rows % head_rows != 0)
    throw InternalError("layout: {} rows do not fall into heads of {} with pairs", rows, head_rows);
  std::vector<float> y(x.size());
  const auto half = static_cast<std::size_t>(head_rows / 2), cols = x.size() / static_cast<std::size_t>(rows);
  for (std::size_t head = 0; head < x.size(); head += 2 * half * cols)
    for (std::size_t i = 0; i < 2 * half; ++i) {
      const auto from = x.begin() + static_cast<std::ptrdiff_t>(head + i * cols);
      const std::size_t row = i / 2 + i % 2 * half;
      std::copy_n(from, cols, y.begin() + static_cast<std::ptrdiff_t>(head + row * cols));
    }
  return y;
}

/// x of f(x) = y; NaN where there is none. A decay of exactly 0 or 1 becomes the mildest number that gives it in
/// single precision, so that no parameter is infinite.
double unpublished(Numbers numbers, double y) {
  constexpr double kNone = -104, kAll = 4.65;  // log(e^-104 .. ) is no decay at all, e^{-e^4.65} none left
  switch (numbers) {
    case Numbers::kExp:
      return std::log(y);
    case Numbers::kMinusExp:
      return std::isnan(y) || y > 0 ? std::nan("") : std::max(std::log(-y), kNone);
    case Numbers::kExpMinusExp:
      return std::isnan(y) || y < 0 || y > 1 ? std::nan("") : std::clamp(std::log(-std::log(y)), kNone, kAll);
    case Numbers::kSame:
    case Numbers::kHalved:
      break;
  }
  return y;
}

const char* formula(Numbers numbers) {
  return numbers == Numbers::kExp ? "e^x" : numbers == Numbers::kMinusExp ? "-e^x" : "e^(-e^x)";
}

bool fits(const TensorInfo& tensor, const Placement& placement) {
  const std::vector<Index> have(tensor.shape.begin(), tensor.shape.end());
  if (placement.rule->form == Form::kAnyShape)
    return tensor.elements() == static_cast<std::uint64_t>(placement.shape.count());
  return without_ones(have) == without_ones(extents(placement.shape));
}

[[maybe_unused]] std::span<float> as_floats(std::span<float> numbers) { return numbers; }
[[maybe_unused]] std::span<float> as_floats(std::span<double>) { return {}; }

/// A placement's one parameter, where the tensor's numbers can be read into it as they are; else nothing.
std::span<float> place_itself(const Placement& placement) {
  const Parameter& parameter = *placement.parameters.front();
  const Form form = placement.rule->form;
  const bool moves = placement.parameters.size() > 1 || form == Form::kTransposed || form == Form::kPaired;
  return moves || parameter.is_packed() ? std::span<float>{} : as_floats(parameter.value().span());
}

void store(const TensorSource& source, const TensorInfo& tensor, const Parameter& parameter,
           std::span<const float> numbers) {
  if (!parameter.is_packed()) {
    std::copy(numbers.begin(), numbers.end(), parameter.value().span().begin());
    return;
  }
  try {
    parameter.packed().encode(0, numbers);
  } catch (const NumericError& error) {
    throw InputError("{}: {} {}; keep it in f32", source.name(), tensor.name, error.what());
  }
}

void read_placement(const TensorSource& source, const TensorInfo& tensor, const Placement& placement) {
  std::vector<float> kept;
  std::span<float> numbers = place_itself(placement);
  const bool in_place = !numbers.empty();
  if (!in_place) kept.resize(tensor.elements()), numbers = kept;
  source.read(tensor, numbers);
  const Shape& shape = placement.shape;
  if (placement.rule->form == Form::kTransposed) numbers = kept = transposed(kept, shape[-2], shape[-1]);
  if (placement.rule->form == Form::kPaired) numbers = kept = unpaired(kept, shape[0], placement.rule->head_rows);
  if (placement.rule->numbers == Numbers::kHalved) {
    const auto times = static_cast<int>(placement.layer / placement.rule->halved_every);
    for (float& number : numbers) number = std::ldexp(number, times);
  } else if (placement.rule->numbers != Numbers::kSame) {
    for (float& number : numbers) {
      const double ours = unpublished(placement.rule->numbers, number);
      if (!std::isfinite(ours))
        throw InputError("{}: {} has the number {}, which is no {}; get the file again", source.name(), tensor.name,
                         number, formula(placement.rule->numbers));
      number = static_cast<float>(ours);
    }
  }
  if (in_place) return;
  for (const Parameter* parameter : placement.parameters) {
    const auto count = static_cast<std::size_t>(parameter->shape().count());
    store(source, tensor, *parameter, numbers.first(count));
    numbers = numbers.subspan(count);
  }
}

void require_copy(const TensorSource& source, const TensorInfo& tensor, const std::string& original) {
  const TensorInfo* const first = source.find(original);
  if (first != nullptr && first->elements() == tensor.elements() &&
      source.read(tensor.name) == source.read(first->name))
    return;
  throw InputError("{}: {} should repeat {}, and does not; its configuration and its tensors disagree", source.name(),
                   tensor.name, original);
}

std::string without_star(const std::string& name) { return name.substr(0, name.size() - 1); }

/// A model's parameters that are not placed yet.
class OpenParameters {
 public:
  explicit OpenParameters(const Parameters& parameters) {
    for (const auto& entry : parameters.all()) names_.push_back(entry.name), open_[entry.name] = entry.parameter;
  }
  /// Null where it is not there, or was taken.
  const Parameter* take(const std::string& name) {
    const auto found = open_.find(name);
    if (found == open_.end()) return nullptr;
    const Parameter* const parameter = found->second;
    open_.erase(found);
    return parameter;
  }
  /// In the model's order.
  std::vector<std::string> beginning_with(const std::string& prefix) const {
    std::vector<std::string> names;
    for (const std::string& name : names_)
      if (name.starts_with(prefix) && open_.contains(name)) names.push_back(name);
    return names;
  }
  void require_none() const {
    if (!open_.empty()) throw InternalError("layout: there is no published tensor for {}", open_.begin()->first);
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, const Parameter*> open_;
};

/// The rule for what is unused that `name` falls under, or null.
const UnusedTensor* find_unused(const TensorLayout& layout, const std::string& name, Index layers) {
  for (const UnusedTensor& unused : layout.unused)
    for (Index layer = 0; layer < layers; ++layer) {
      if (in_layer(unused.published, layer) == name) return &unused;
      if (unused.published.find("{}") == std::string::npos) break;
    }
  return nullptr;
}

/// What no placement took: a line for each, or an error.
std::vector<std::string> account_for_rest(const TensorSource& source, const TensorLayout& layout, Index layers,
                                          const std::set<std::string_view>& used, bool skip_unknown) {
  std::vector<std::string> lines;
  std::vector<const TensorInfo*> unknown;
  std::map<std::string, std::vector<std::string>> unused;
  for (const TensorInfo& tensor : source.tensors()) {
    if (used.contains(tensor.name)) continue;
    if (const UnusedTensor* const rule = find_unused(layout, tensor.name, layers)) {
      if (!rule->copy_of.empty()) require_copy(source, tensor, rule->copy_of);
      unused[rule->why].push_back(tensor.name);
    } else {
      unknown.push_back(&tensor);
      lines.push_back(fmt::format("not used: {} {}", shown_name(tensor.name), type_and_shape(tensor)));
    }
  }
  if (!unknown.empty() && !skip_unknown)
    throw InputError(
        "{}: has {} tensors that the model has no place for, {} {} the first; --skip-unknown leaves them "
        "out",
        source.name(), unknown.size(), shown_name(unknown.front()->name), type_and_shape(*unknown.front()));
  for (const auto& [why, names] : unused)
    lines.push_back(fmt::format("not used: {}{}: {}", names.front(),
                                names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "", why));
  return lines;
}

}  // namespace

std::vector<Placement> place_parameters(const TensorLayout& layout, const Parameters& parameters, Index layers) {
  OpenParameters open(parameters);
  std::vector<Placement> placements;
  for (const TensorRule& rule : layout.rules) {
    const bool by_layer = rule.published.find("{}") != std::string::npos;
    for (Index layer = 0; layer < (by_layer ? layers : 1); ++layer) {
      const std::string published = in_layer(rule.published, layer);
      if (rule.published.ends_with('*')) {
        const std::string prefix = without_star(in_layer(rule.ours.front(), layer));
        for (const std::string& name : open.beginning_with(prefix))
          placements.push_back(
              {without_star(published) + name.substr(prefix.size()), {}, {open.take(name)}, &rule, layer});
        continue;
      }
      Placement placement{published, {}, {}, &rule, layer};
      for (const std::string& name : rule.ours)
        if (const Parameter* const parameter = open.take(in_layer(name, layer)))
          placement.parameters.push_back(parameter);
      if (placement.parameters.empty()) continue;
      if (placement.parameters.size() != rule.ours.size())
        throw InternalError("layout: {} has only {} of its {} parameters", placement.published,
                            placement.parameters.size(), rule.ours.size());
      placements.push_back(std::move(placement));
    }
  }
  open.require_none();
  for (Placement& placement : placements) placement.shape = published_shape(placement);
  return placements;
}

std::vector<std::string> read_tensors(const TensorSource& source, const TensorLayout& layout, Parameters& parameters,
                                      Index layers, bool skip_unknown) {
  std::set<std::string_view> used;
  const std::vector<Placement> placements = place_parameters(layout, parameters, layers);
  for (const Placement& placement : placements) {
    const TensorInfo* const tensor = source.find(placement.published);
    if (tensor == nullptr)
      throw InputError("{}: lacks the tensor {} {}, which its model has; is the file whole?", source.name(),
                       placement.published, placement.shape.text());
    if (!fits(*tensor, placement))
      throw InputError("{}: {} is {}, and {} is what its model has; its configuration and its tensors disagree",
                       source.name(), tensor->name, type_and_shape(*tensor), placement.shape.text());
    used.insert(tensor->name);
  }
  std::vector<std::string> lines = account_for_rest(source, layout, layers, used, skip_unknown);
  for (const Placement& placement : placements) read_placement(source, source.tensor(placement.published), placement);
  return lines;
}

std::vector<float> published_numbers(const Placement& placement) {
  if (placement.rule->numbers != Numbers::kSame || placement.rule->form == Form::kPaired)
    throw InternalError("layout: {} is read in a form that is never written", placement.published);
  std::vector<float> numbers(static_cast<std::size_t>(placement.shape.count()));
  for (std::span<float> rest = numbers; const Parameter* parameter : placement.parameters) {
    const std::span<float> own = rest.first(static_cast<std::size_t>(parameter->shape().count()));
    if (parameter->is_packed())
      parameter->packed().decode(own);
    else
      std::ranges::transform(parameter->value().span(), own.begin(), [](Real x) { return static_cast<float>(x); });
    rest = rest.subspan(own.size());
  }
  if (placement.rule->form == Form::kTransposed)
    numbers = transposed(numbers, placement.shape[-1], placement.shape[-2]);
  return numbers;
}

}  // namespace quipu::inline QUIPU_REAL_NS
