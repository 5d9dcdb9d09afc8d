#pragma once
#include <memory>
#include <span>

#include "base/number_format.h"
#include "tensor/view.h"

namespace quipu {

/// A matrix [rows,cols] in a number format other than float32: row_bytes(format, cols) bytes a row, one after another,
/// in memory as in a file. 64 bytes behind the last row may be read, but mean nothing. A handle, as Tensor is: copies
/// share the storage.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  /// Contents undefined.
  PackedMatrix(NumberFormat format, Index rows, Index cols);

  bool defined() const { return storage_ != nullptr; }
  NumberFormat format() const { return format_; }
  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index row_size() const { return row_size_; }  ///< in bytes
  std::byte* row(Index r) const { return storage_.get() + r * row_size_; }
  std::span<std::byte> bytes() const { return {storage_.get(), static_cast<std::size_t>(rows_ * row_size_)}; }
  /// Rows [begin, end) of the same storage.
  PackedMatrix slice(Index begin, Index end) const;

  /// Stores rows [first, first + values.size() / cols) from their numbers. Throws NumericError as encode_row does.
  void encode(Index first, std::span<const float> values) const;
  /// All numbers, for export and tests: values.size() = rows cols.
  void decode(std::span<float> values) const;

 private:
  std::shared_ptr<std::byte> storage_;
  NumberFormat format_ = NumberFormat::bf16;
  Index rows_ = 0, cols_ = 0, row_size_ = 0;
};

}  // namespace quipu
