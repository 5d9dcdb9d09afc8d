#include "grad/parameter.h"

#include <algorithm>
#include <cmath>

#include "base/blocks.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {

Initializer constant(double value) {
  return [value](std::span<Real> values, const Rng&) {
    std::fill(values.begin(), values.end(), static_cast<Real>(value));
  };
}

Initializer normal(double deviation) {
  return [deviation](std::span<Real> values, const Rng& rng) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Real>(deviation * rng.normal(i));
  };
}

Initializer uniform(double bound) {
  return [bound](std::span<Real> values, const Rng& rng) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Real>(bound * (2 * rng.uniform(i) - 1));
  };
}

Initializer xavier_uniform(Index out, Index in, double gain) {
  return uniform(gain * std::sqrt(6.0 / static_cast<double>(in + out)));
}

Var Parameter::rows(Index begin, Index end) const {
  Shape shape = shape_;
  shape[0] = end - begin;
  const Index first = begin * (shape_.count() / shape_[0]);
  return {value_.part(first, shape), gradient_ ? Gradient::bound(gradient_->sum().part(first, shape)) : nullptr};
}

Parameter undecayed(const Shape& shape, Initializer init) { return {shape, std::move(init), {true, false, 1}}; }
Parameter buffer(const Shape& shape, Initializer init) { return {shape, std::move(init), {false, false, 0}}; }

Parameter matrix(Index out, Index in, Initializer init) { return {{out, in}, std::move(init), {.matrix = true}}; }

Parameter Parameter::as_matrix() && {
  if (shape_.rank() != 2) throw InternalError("a matrix of shape {}", shape_.text());
  traits_.matrix = true;
  return std::move(*this);
}

FormatChoice matrices_in(NumberFormat format) {
  return [format](const std::string&, const Parameter& parameter) {
    if (!parameter.traits().matrix || parameter.shape()[1] < kLeastPackedColumns) return NumberFormat::f32;
    const Index columns = parameter.shape()[1];
    const bool padded = row_bytes(NumberFormat::q4, columns) > row_bytes(NumberFormat::q8, columns);
    return format == NumberFormat::q4 && padded ? NumberFormat::q8 : format;
  };
}

void Parameter::refuse_packed() const {
  throw InternalError("the floats of a matrix {} in {}", shape_.text(), format_name(packed_.format()));
}

Parameters::Parameters(const std::function<void(const ParameterVisitor&)>& visit, bool gradients,
                       const FormatChoice& format) {
  constexpr Index kAlign = 16;  // each parameter starts on a cache line
  visit(ParameterVisitor([&](const std::string& name, Parameter& parameter) {
    if (const NumberFormat chosen = format ? format(name, parameter) : NumberFormat::f32; chosen != NumberFormat::f32) {
      if (gradients || !parameter.traits().matrix)
        throw InternalError("{} in {}: {}", name, format_name(chosen), gradients ? "is trained" : "no matrix");
      parameter.packed_ = PackedMatrix(chosen, parameter.shape()[0], parameter.shape()[1]);
      packed_.push_back({name, &parameter, 0, parameter.shape().count()});
      return;
    }
    auto& list = parameter.traits().trainable ? trainable_ : buffers_;
    const Index begin = list.empty() ? 0 : (list.back().end + kAlign - 1) / kAlign * kAlign;
    list.push_back({name, &parameter, begin, begin + parameter.shape().count()});
  }));
  const auto flat = [](const std::vector<Entry>& list) { return Tensor::zeros({list.empty() ? 0 : list.back().end}); };
  values_ = flat(trainable_);
  buffer_values_ = flat(buffers_);
  if (gradients) gradients_ = flat(trainable_);
  for (Entry& e : trainable_) {
    e.parameter->value_ = values_.part(e.begin, e.parameter->shape());
    e.parameter->gradient_ = gradients ? Gradient::bound(gradients_.part(e.begin, e.parameter->shape())) : nullptr;
  }
  for (Entry& e : buffers_) e.parameter->value_ = buffer_values_.part(e.begin, e.parameter->shape());
}

void Parameters::initialise(std::uint64_t seed) {
  std::vector<Real> drawn;
  std::vector<float> numbers;
  for (const Entry& e : all()) {
    const Rng rng(seed, 0, rng_site(e.name.c_str()));
    if (!e.parameter->is_packed()) {
      e.parameter->init_(e.parameter->value_.span(), rng);
      continue;
    }
    drawn.resize(static_cast<std::size_t>(e.end));
    e.parameter->init_(drawn, rng);
    numbers.assign(drawn.begin(), drawn.end());
    e.parameter->packed_.encode(0, numbers);
  }
}

void Parameters::zero_gradients() {
  for_blocks(gradients_.count(), kElementBlock,
             [&](Index begin, Index end) { kernels::fill(gradients_.data() + begin, 0, end - begin); });
}

std::vector<Parameters::Entry> Parameters::all() const {
  std::vector<Entry> entries = trainable_;
  entries.insert(entries.end(), packed_.begin(), packed_.end());
  entries.insert(entries.end(), buffers_.begin(), buffers_.end());
  return entries;
}

Index Parameters::count() const {
  Index count = trainable_.empty() ? 0 : trainable_.back().end;
  for (const Entry& e : packed_)
    if (e.parameter->traits().trainable) count += e.end;
  return count;
}

Index Parameters::value_bytes() const {
  Index bytes = (values_.count() + buffer_values_.count()) * static_cast<Index>(sizeof(Real));
  for (const Entry& e : packed_) bytes += static_cast<Index>(e.parameter->packed().bytes().size());
  return bytes;
}

const std::string& Parameters::name_at(Index index) const {
  const auto after = std::upper_bound(trainable_.begin(), trainable_.end(), index,
                                      [](Index i, const Entry& e) { return i < e.begin; });
  return std::prev(after)->name;
}

}  // namespace quipu::inline QUIPU_REAL_NS
