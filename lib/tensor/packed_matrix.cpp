#include "tensor/packed_matrix.h"

#include <exception>

#include "base/blocks.h"
#include "tensor/arena.h"

namespace quipu {
namespace {

constexpr Index kRows = 16;
constexpr Index kSlack = 64;  // a vector

std::span<std::byte> row_span(const PackedMatrix& matrix, Index r) {
  return {matrix.row(r), static_cast<std::size_t>(matrix.row_size())};
}

}  // namespace

PackedMatrix::PackedMatrix(NumberFormat format, Index rows, Index cols)
    : storage_(
          static_cast<std::byte*>(arena::allocate(static_cast<std::size_t>(rows * row_bytes(format, cols) + kSlack))),
          [](std::byte* block) { arena::release(block); }),
      format_(format),
      rows_(rows),
      cols_(cols),
      row_size_(row_bytes(format, cols)) {}

PackedMatrix PackedMatrix::slice(Index begin, Index end) const {
  PackedMatrix part = *this;
  part.storage_ = std::shared_ptr<std::byte>(storage_, row(begin));
  part.rows_ = end - begin;
  return part;
}

void PackedMatrix::encode(Index first, std::span<const float> values) const {
  const Index count = static_cast<Index>(values.size()) / cols_;
  if (count * cols_ != static_cast<Index>(values.size()) || first < 0 || first + count > rows_)
    throw InternalError("{} numbers from row {} of a matrix [{}, {}]", values.size(), first, rows_, cols_);
  std::exception_ptr failure;
  for_blocks(count, kRows, [&](Index begin, Index end) {
    try {
      for (Index r = begin; r < end; ++r)
        encode_row(format_, values.subspan(static_cast<std::size_t>(r * cols_), static_cast<std::size_t>(cols_)),
                   row_span(*this, first + r));
    } catch (...) {
#pragma omp critical(packed_matrix_failure)
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

void PackedMatrix::decode(std::span<float> values) const {
  if (static_cast<Index>(values.size()) != rows_ * cols_)
    throw InternalError("{} numbers of a matrix [{}, {}]", values.size(), rows_, cols_);
  for_blocks(rows_, kRows, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      decode_row(format_, row_span(*this, r),
                 values.subspan(static_cast<std::size_t>(r * cols_), static_cast<std::size_t>(cols_)));
  });
}

}  // namespace quipu
