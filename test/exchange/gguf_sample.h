#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "models/language_model.h"
#include "store/foreign_samples.h"

// GGUF files as llama.cpp's converter makes them of published tensors, written from what is known of these files alone
// and not from the tables that are tested.
namespace quipu_test {

/// Numbers in row-major order.
struct Array {
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};

inline Array transposed(const Array& x) {
  const std::uint64_t rows = x.shape[x.shape.size() - 2], cols = x.shape.back(), square = rows * cols;
  Array y{x.shape, std::vector<float>(x.values.size())};
  std::swap(y.shape[y.shape.size() - 2], y.shape.back());
  for (std::uint64_t base = 0; base < x.values.size(); base += square)
    for (std::uint64_t i = 0; i < rows; ++i)
      for (std::uint64_t j = 0; j < cols; ++j) y.values[base + j * rows + i] = x.values[base + i * cols + j];
  return y;
}

inline Array in_shape(Array x, std::vector<std::uint64_t> shape) {
  x.shape = std::move(shape);
  return x;
}

inline Array squeezed(Array x) {
  std::erase(x.shape, 1U);
  return x;
}

inline Array times(Array x, double factor) {
  for (float& value : x.values) value = static_cast<float>(value * factor);
  return x;
}

/// [heads, 2, half, ..] -> [heads, half, 2, ..], as for rotary positions on neighbours.
inline Array paired(const Array& x, std::uint64_t heads) {
  const std::uint64_t rows = x.shape[0], cols = x.values.size() / rows, half = rows / heads / 2;
  Array y = x;
  for (std::uint64_t head = 0; head < heads; ++head)
    for (std::uint64_t part = 0; part < 2; ++part)
      for (std::uint64_t i = 0; i < half; ++i)
        std::copy_n(x.values.begin() + static_cast<std::ptrdiff_t>((head * 2 * half + part * half + i) * cols), cols,
                    y.values.begin() + static_cast<std::ptrdiff_t>((head * 2 * half + 2 * i + part) * cols));
  return y;
}

inline Array stacked(const std::vector<Array>& parts) {
  Array y{{parts.size(), 1, 1, parts.front().values.size()}, {}};
  for (const Array& part : parts) y.values.insert(y.values.end(), part.values.begin(), part.values.end());
  return y;
}

/// A file that is put together value by value and tensor by tensor (all f32).
class GgufFile {
 public:
  GgufFile& text(const std::string& key, const std::string& value) { return add(key, 8, gguf_text(value)); }
  GgufFile& count(const std::string& key, std::uint32_t value) { return add(key, 4, bytes_of(value)); }
  GgufFile& real(const std::string& key, float value) { return add(key, 6, bytes_of(value)); }
  GgufFile& flag(const std::string& key, bool value) { return add(key, 7, std::string(1, value ? '\1' : '\0')); }
  GgufFile& texts(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes = bytes_of(std::uint32_t{8}) + bytes_of(std::uint64_t{values.size()});
    for (const std::string& value : values) bytes += gguf_text(value);
    return add(key, 9, bytes);
  }
  GgufFile& reals(const std::string& key, const std::vector<float>& values) {
    return add(key, 9, bytes_of(std::uint32_t{6}) + bytes_of(std::uint64_t{values.size()}) + bytes_of(values));
  }
  GgufFile& counts(const std::string& key, const std::vector<std::int32_t>& values) {
    return add(key, 9, bytes_of(std::uint32_t{5}) + bytes_of(std::uint64_t{values.size()}) + bytes_of(values));
  }
  GgufFile& tensor(const std::string& name, const Array& x) {
    infos_ += gguf_tensor(name, {x.shape.rbegin(), x.shape.rend()}, 0, data_.size());
    data_ += bytes_of(x.values);
    data_.resize((data_.size() + 31) / 32 * 32);
    ++tensors_;
    return *this;
  }
  std::string bytes() const { return gguf(values_, metadata_, tensors_, infos_, data_); }

 private:
  GgufFile& add(const std::string& key, std::uint32_t type, const std::string& bytes) {
    metadata_ += gguf_value(key, type, bytes);
    ++values_;
    return *this;
  }

  std::uint64_t values_ = 0, tensors_ = 0;
  std::string metadata_, infos_, data_;
};

/// Published tensors by name.
using Published = std::function<Array(const std::string&)>;

/// What has no `.weight` or `.bias` at its end gets the one that llama.cpp adds.
inline void add_same(GgufFile& file, const Published& published, const std::string& name, const std::string& of) {
  for (const char* part : {".weight", ".bias"}) file.tensor(name + part, published(of + part));
}

}  // namespace quipu_test
