#include "grad/ops_embed.h"

#include <algorithm>
#include <vector>

#include "base/blocks.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kRowBlock = 64;

Index checked_token(Index token, Index vocab) {
  if (token < 0 || token >= vocab)
    throw InputError(
        "embedding: token id {} is outside the vocabulary (size {}); convert the text with the model's tokenizer",
        token, vocab);
  return token;
}

Index checked_position(Index position, Index context) {
  if (position < 0 || position >= context)
    throw InputError("position {} is outside the learned positions ({}); read at most {} tokens at once", position,
                     context, context);
  return position;
}

/// Which places of a sequence refer to each row of a table, in order: places[start[r]] .. places[start[r+1]].
struct Buckets {
  std::vector<Index> start, places;

  Buckets(std::span<const Index> rows, Index table_rows)
      : start(static_cast<std::size_t>(table_rows) + 1), places(rows.size()) {
    for (const Index row : rows) ++start[static_cast<std::size_t>(row) + 1];
    for (std::size_t r = 1; r < start.size(); ++r) start[r] += start[r - 1];
    std::vector<Index> next(start.begin(), start.end() - 1);
    for (std::size_t i = 0; i < rows.size(); ++i)
      places[static_cast<std::size_t>(next[static_cast<std::size_t>(rows[i])]++)] = static_cast<Index>(i);
  }

  std::span<const Index> of(Index row) const {
    const auto r = static_cast<std::size_t>(row);
    return std::span(places).subspan(static_cast<std::size_t>(start[r]),
                                     static_cast<std::size_t>(start[r + 1] - start[r]));
  }
};

/// y += the rows of dy at `places`; sums of many go through `sums`, in double.
void add_places(Real* y, const Matrix& dy, std::span<const Index> places, std::vector<double>& sums) {
  constexpr std::size_t kMany = 8;
  if (places.size() <= kMany) {
    for (const Index place : places) kernels::add_into(y, dy.row(place), dy.cols);
    return;
  }
  sums.assign(y, y + dy.cols);
  for (const Index place : places) {
    const Real* const row = dy.row(place);
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(row[c]);
  }
  std::transform(sums.begin(), sums.end(), y, [](double sum) { return static_cast<Real>(sum); });
}

/// slot[rows[i]] += dy[i].
void scatter_rows(Gradient& slot, std::span<const Index> rows, const Tensor& dy) {
  const Index table_rows = slot.shape()[0];
  const Matrix from = dy.matrix();
  const Buckets buckets(rows, table_rows);
  const auto [target, beta] = slot.target(table_rows, from.cols);
  const Matrix into = target;
  const bool fresh = beta == 0;
  const Index blocks = (table_rows + kRowBlock - 1) / kRowBlock;
  // Rows are independent, so that the order in which threads take them does not matter; frequent tokens lie together.
#pragma omp parallel for schedule(dynamic)
  for (Index block = 0; block < blocks; ++block) {
    std::vector<double> sums;
    for (Index r = block * kRowBlock; r < std::min(table_rows, (block + 1) * kRowBlock); ++r) {
      if (fresh) kernels::fill(into.row(r), 0, into.cols);
      add_places(into.row(r), from, buckets.of(r), sums);
    }
  }
}

}  // namespace

Var embedding(Tape& tape, std::span<const std::int32_t> tokens, const Var& table, const Shape& leading) {
  const OpScope op_scope("embedding");
  const Index vocab = table.extent(0);
  const Index width = table.extent(1);
  if (leading.count() != static_cast<Index>(tokens.size()))
    throw ShapeError("embedding: {} tokens for the shape {}", tokens.size(), leading.text());
  std::vector<Index> rows(tokens.size());
  std::transform(tokens.begin(), tokens.end(), rows.begin(), [=](Index token) { return checked_token(token, vocab); });
  std::vector<Index> extents(leading.begin(), leading.end());
  extents.push_back(width);
  Tensor y((Shape(extents)));
  for_blocks(static_cast<Index>(rows.size()), kRowBlock, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      std::copy_n(table.value().data() + rows[static_cast<std::size_t>(i)] * width, width, y.data() + i * width);
  });
  return tape.record(std::move(y), {&table}, [rows = std::move(rows), slot = table.gradient()](const Tensor& dy) {
    scatter_rows(*slot, rows, dy);
  });
}

Var add_positions(Tape& tape, const Var& x, const Var& table, std::span<const std::int64_t> positions) {
  const OpScope op_scope("add positions");
  const Matrix in = x.value().matrix();
  if (in.rows != static_cast<Index>(positions.size()) || in.cols != table.extent(1))
    throw ShapeError("positions: {} positions of width {} for the shape {}", positions.size(), table.extent(1),
                     x.shape().text());
  std::vector<Index> rows(positions.begin(), positions.end());
  for (const Index row : rows) checked_position(row, table.extent(0));
  Tensor y(x.shape());
  const Matrix out = y.matrix();
  for_blocks(in.rows, kRowBlock, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      kernels::add(out.row(i), in.row(i), table.value().data() + rows[static_cast<std::size_t>(i)] * in.cols, in.cols);
  });
  return tape.record(std::move(y), {&x, &table},
                     [rows = std::move(rows), dx = x.gradient(), dtable = table.gradient()](Tensor dy) {
                       if (dtable) scatter_rows(*dtable, rows, dy);
                       add_gradient(dx, std::move(dy));
                     });
}

void embed_into(Real* y, Index token, const Tensor& table) {
  const Index width = table.extent(1);
  std::copy_n(table.data() + checked_token(token, table.extent(0)) * width, width, y);
}

void add_position_into(Real* y, std::int64_t position, const Tensor& table) {
  const Index width = table.extent(1);
  kernels::add_into(y, table.data() + checked_position(position, table.extent(0)) * width, width);
}

}  // namespace quipu::inline QUIPU_REAL_NS
