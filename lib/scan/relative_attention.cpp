#include "scan/relative_attention.h"

#include <algorithm>
#include <cmath>

#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kTile = 64;  ///< queries at a time

struct Extents {
  Index heads, width, dim, distances;
  Index window, segment, lanes = 0, keys = 0;  ///< keys: the most that a unit has
  bool blocks_see_past;
  Real scale;

  explicit Extents(const RelativeAttentionInput& in)
      : heads(in.content_bias.extent(0)),
        width(in.content_bias.extent(1)),
        dim(heads * width),
        distances(in.distances.extent(0)),
        window(in.window),
        segment(in.segment),
        blocks_see_past(in.blocks_see_past),
        scale(static_cast<Real>(1 / std::sqrt(static_cast<double>(width)))) {
    require_shape("relative attention: qkv", in.qkv.shape(), {in.qkv.extent(0), 3 * dim});
    if (in.past.defined()) require_shape("relative attention: past", in.past.shape(), {in.past.extent(0), 2 * dim});
    require_shape("relative attention: distances", in.distances.shape(), {distances, dim});
    require_shape("relative attention: position bias", in.position_bias.shape(), {heads, width});
    for (const RelativeUnit& unit : in.units) {
      keys = std::max(keys, unit.past.end - unit.past.begin + unit.own.end - unit.own.begin);
      lanes = std::max(lanes, unit.lane + 1);
    }
  }
};

/// Queries [begin, end) of a unit, one head of them.
struct Tile {
  const RelativeUnit& unit;
  Index head, begin, end;

  Index rows() const { return end - begin; }
  Index cached() const { return unit.past.end - unit.past.begin; }
  /// The place of query i of the tile among cached and own rows.
  Index place(Index i) const { return cached() + unit.own.end - unit.own.begin - unit.queries + begin + i; }
};

/// The rows [low, high) that the query at `place` sees, counted from the first cached one.
struct Sight {
  Index place, low, high;

  Sight(const Tile& tile, Index i, const Extents& e) : place(tile.place(i)), low(0), high(place + 1) {
    for (const Stretch& block : tile.unit.blocks)
      if (const Index own = place - tile.cached(); block.begin <= own && own < block.end) {
        high = tile.cached() + block.end;
        if (!e.blocks_see_past) low = tile.cached();
      }
    if (e.window > 0) low = std::max(low, place + 1 - e.window);
  }
};

/// The arrays of an attention; the same struct holds values and gradients.
struct Arrays {
  Tensor qkv, past, distances, content_bias, position_bias, y;

  Matrix queries(const Tile& t, const Extents& e) const {
    const Index first = t.unit.own.end - t.unit.queries + t.begin;
    return {qkv.data() + first * 3 * e.dim + t.head * e.width, t.rows(), e.width, 3 * e.dim};
  }
  /// `part`: 1 for keys, 2 for values; the first `count` own rows.
  Matrix own(Index part, const Tile& t, Index count, const Extents& e) const {
    return {qkv.data() + (t.unit.own.begin * 3 + part) * e.dim + t.head * e.width, count, e.width, 3 * e.dim};
  }
  Matrix cached(Index part, const Tile& t, const Extents& e) const {
    return {past.data() + (t.unit.past.begin * 2 + part - 1) * e.dim + t.head * e.width, t.cached(), e.width,
            2 * e.dim};
  }
  /// Distances count-1 .. 0.
  Matrix near(const Tile& t, Index count, const Extents& e) const {
    return {distances.data() + (e.distances - count) * e.dim + t.head * e.width, count, e.width, e.dim};
  }
  Matrix outputs(const Tile& t, const Extents& e) const {
    return {y.data() + (t.unit.out + t.begin) * e.dim + t.head * e.width, t.rows(), e.width, e.dim};
  }
};

/// Where row i's distances 0 .. near-1 stand in a row of products with them, and which keys have them: key j >= first
/// in column j - shift; those before `first` are farther and have column 0.
struct DistanceColumns {
  Index first, shift;

  DistanceColumns(const Sight& sight, Index near)
      : first(std::max(sight.low, sight.place + 1 - near)), shift(sight.place + 1 - near) {}
};

/// Room of one thread.
struct Room {
  std::vector<Real> storage;
  Index used = 0;

  explicit Room(const Extents& e)
      : storage(static_cast<std::size_t>(kTile * (4 * e.width + 2 * e.keys + e.distances))) {}
  Matrix take(Index rows, Index cols) {
    const Matrix piece{storage.data() + used, rows, cols, cols};
    used += rows * cols;
    return piece;
  }
};

/// One tile's queries with their biases, its weights over the keys that it may see, and what backward adds.
class TileWork {
 public:
  TileWork(const Tile& t, const Arrays& x, const Extents& e, Room& room) : t_(t), x_(x), e_(e) {
    room.used = 0;
    for (Index i = 0; i < t.rows(); ++i) {
      sights_.emplace_back(t, i, e);
      keys_ = std::max(keys_, sights_.back().high);
    }
    near_ = std::min(sights_.back().place + 1, e.distances);
    content_ = room.take(t.rows(), e.width), position_ = room.take(t.rows(), e.width);
    weights_ = room.take(t.rows(), keys_), by_distance_ = room.take(t.rows(), near_);
    const Matrix q = x.queries(t, e);
    for (Index i = 0; i < t.rows(); ++i) {
      kernels::add(content_.row(i), q.row(i), bias(x.content_bias), e.width);
      kernels::add(position_.row(i), q.row(i), bias(x.position_bias), e.width);
    }
    weigh();
  }

  void forward() const {
    const Matrix y = x_.outputs(t_, e_);
    if (t_.cached() > 0) blas::multiply(y, cached_part(weights_), x_.cached(2, t_, e_));
    blas::multiply(y, own_part(weights_), x_.own(2, t_, own(), e_), t_.cached() > 0 ? Real{1} : Real{0});
  }

  /// Adds to d's gradients; those of `distances` and the biases are this lane's alone (biases: [2,D] in double).
  void backward(const Arrays& d, double* dbias, Room& room) const {
    const Matrix dscores = room.take(t_.rows(), keys_), dq = room.take(t_.rows(), e_.width);
    const Matrix dy = d.outputs(t_, e_);
    if (t_.cached() > 0) {
      blas::multiply_bt(cached_part(dscores), dy, x_.cached(2, t_, e_));
      blas::multiply_at(d.cached(2, t_, e_), cached_part(weights_), dy, 1);
    }
    blas::multiply_bt(own_part(dscores), dy, x_.own(2, t_, own(), e_));
    blas::multiply_at(d.own(2, t_, own(), e_), own_part(weights_), dy, 1);
    for (Index i = 0; i < t_.rows(); ++i) {
      const Sight& s = sights_[static_cast<std::size_t>(i)];
      Real* const row = dscores.row(i);
      kernels::softmax_row_backward(row + s.low, row + s.low, weights_.row(i) + s.low, e_.scale, s.high - s.low);
      clear_unseen(row, s);
    }
    backward_content(dscores, dq, d, dbias);
    backward_distances(dscores, dq, d, dbias + e_.dim);
  }

 private:
  const Real* bias(const Tensor& biases) const { return biases.data() + t_.head * e_.width; }
  Index own() const { return keys_ - t_.cached(); }
  Matrix cached_part(Matrix scores) const { return scores.columns(0, t_.cached()); }
  Matrix own_part(Matrix scores) const { return scores.columns(t_.cached(), keys_); }
  void clear_unseen(Real* row, const Sight& s) const {
    std::fill(row, row + s.low, Real{0});
    std::fill(row + s.high, row + keys_, Real{0});
  }

  void weigh() {
    if (t_.cached() > 0) blas::multiply_bt(cached_part(weights_), content_, x_.cached(1, t_, e_));
    blas::multiply_bt(own_part(weights_), content_, x_.own(1, t_, own(), e_));
    blas::multiply_bt(by_distance_, position_, x_.near(t_, near_, e_));
    for (Index i = 0; i < t_.rows(); ++i) {
      const Sight& s = sights_[static_cast<std::size_t>(i)];
      const DistanceColumns columns(s, near_);
      Real* const row = weights_.row(i);
      for (Index j = s.low; j < columns.first; ++j) row[j] += by_distance_(i, 0);
      kernels::add_into(row + columns.first, by_distance_.row(i) + columns.first - columns.shift,
                        s.place + 1 - columns.first);
      for_later_rows(i, s, [&](Index j, const Real* next, Index distance) {
        const Real* const r = distance_row(x_.distances, distance);
        row[j] += kernels::dot(next, r, e_.width) + kernels::dot(bias(x_.position_bias), r, e_.width);
      });
      kernels::softmax_row(row + s.low, row + s.low, e_.scale, s.high - s.low);
      clear_unseen(row, s);
    }
  }

  /// fn(key j, the query of the next row, distance) for what lies two and more rows ahead of query i.
  template <typename F>
  void for_later_rows(Index i, const Sight& s, F&& fn) const {
    for (Index j = s.place + 2; j < s.high; ++j)
      fn(j, x_.queries(t_, e_).row(i + 1), std::min(t_.cached() + e_.segment + 1 + s.place - j, e_.distances - 1));
  }
  Real* distance_row(const Tensor& distances, Index distance) const {
    return distances.data() + (e_.distances - 1 - distance) * e_.dim + t_.head * e_.width;
  }

  void add_to_queries(Matrix dq, const Arrays& d, double* dbias) const {
    const Matrix sum = d.queries(t_, e_);
    for (Index i = 0; i < dq.rows; ++i) {
      kernels::add_into(sum.row(i), dq.row(i), e_.width);
      for (Index c = 0; c < e_.width; ++c) dbias[t_.head * e_.width + c] += static_cast<double>(dq(i, c));
    }
  }

  void backward_content(Matrix dscores, Matrix dq, const Arrays& d, double* dbias) const {
    if (t_.cached() > 0) {
      blas::multiply_at(d.cached(1, t_, e_), cached_part(dscores), content_, 1);
      blas::multiply(dq, cached_part(dscores), x_.cached(1, t_, e_));
    }
    blas::multiply_at(d.own(1, t_, own(), e_), own_part(dscores), content_, 1);
    blas::multiply(dq, own_part(dscores), x_.own(1, t_, own(), e_), t_.cached() > 0 ? Real{1} : Real{0});
    add_to_queries(dq, d, dbias);
  }

  void backward_distances(Matrix dscores, Matrix dq, const Arrays& d, double* dbias) const {
    for (Index i = 0; i < t_.rows(); ++i) {
      const Sight& s = sights_[static_cast<std::size_t>(i)];
      const DistanceColumns columns(s, near_);
      Real *const to = by_distance_.row(i), *const from = dscores.row(i);
      std::fill_n(to, near_, Real{0});
      std::copy(from + columns.first, from + s.place + 1, to + columns.first - columns.shift);
      for (Index j = s.low; j < columns.first; ++j) to[0] += from[j];
      for_later_rows(i, s, [&](Index j, const Real* next, Index distance) {
        const Real* const r = distance_row(x_.distances, distance);
        Real* const dr = distance_row(d.distances, distance);
        kernels::axpy(d.queries(t_, e_).row(i + 1), from[j], r, e_.width);
        kernels::axpy(dr, from[j], next, e_.width);
        kernels::axpy(dr, from[j], bias(x_.position_bias), e_.width);
        for (Index c = 0; c < e_.width; ++c) dbias[t_.head * e_.width + c] += static_cast<double>(from[j] * r[c]);
      });
    }
    blas::multiply_at(d.near(t_, near_, e_), by_distance_, position_, 1);
    blas::multiply(dq, by_distance_, x_.near(t_, near_, e_));
    add_to_queries(dq, d, dbias);
  }

  const Tile& t_;
  const Arrays& x_;
  const Extents& e_;
  std::vector<Sight> sights_;
  Index keys_ = 0, near_ = 0;
  Matrix content_, position_, weights_, by_distance_;
};

/// fn(tile) for the queries of a unit, in order.
template <typename F>
void for_tiles(const RelativeUnit& unit, Index head, F&& fn) {
  for (Index begin = 0; begin < unit.queries; begin += kTile)
    fn(Tile{unit, head, begin, std::min(unit.queries, begin + kTile)});
}

struct Backward {
  Extents e;
  std::vector<RelativeUnit> units;
  Arrays x;

  /// Adds to the gradients of d. A thread does a head of a lane, whose sums over its units are put together at the end,
  /// lane by lane.
  void run(const Arrays& d) const {
    const Index size = e.distances * e.dim;
    const Tensor distances = Tensor::zeros({e.lanes, e.distances, e.dim});
    std::vector<double> biases(static_cast<std::size_t>(2 * e.lanes * e.dim), 0);
#pragma omp parallel
    {
      Room room(e);
#pragma omp for schedule(dynamic)
      for (Index job = 0; job < e.lanes * e.heads; ++job) {
        const Index lane = job / e.heads;
        Arrays own = d;
        own.distances = distances.part(lane * size, {e.distances, e.dim});
        for (const RelativeUnit& unit : units)
          if (unit.lane == lane)
            for_tiles(unit, job % e.heads, [&](const Tile& tile) {
              TileWork(tile, x, e, room).backward(own, biases.data() + 2 * lane * e.dim, room);
            });
      }
    }
    for (Index lane = 0; lane < e.lanes; ++lane) {
      kernels::add_into(d.distances.data(), distances.data() + lane * size, size);
      for (Index c = 0; c < e.dim; ++c) {
        d.content_bias.data()[c] += static_cast<Real>(biases[static_cast<std::size_t>(2 * lane * e.dim + c)]);
        d.position_bias.data()[c] += static_cast<Real>(biases[static_cast<std::size_t>((2 * lane + 1) * e.dim + c)]);
      }
    }
  }
};

}  // namespace

Var relative_attention(Tape& tape, const RelativeAttentionInput& in, const Shape& shape) {
  const OpScope op_scope("relative attention");
  const Extents e(in);
  const Arrays x{in.qkv.value(),          in.past.value(),          in.distances.value(),
                 in.content_bias.value(), in.position_bias.value(), Tensor::zeros(shape)};
  if (x.y.extent(-1) != e.dim) throw ShapeError("relative attention: {} columns for {}", x.y.extent(-1), e.dim);
  const Index jobs = static_cast<Index>(in.units.size()) * e.heads;
#pragma omp parallel if (jobs > 1)
  {
    Room room(e);
#pragma omp for schedule(dynamic)
    for (Index job = 0; job < jobs; ++job)
      for_tiles(in.units[static_cast<std::size_t>(job / e.heads)], job % e.heads,
                [&](const Tile& tile) { TileWork(tile, x, e, room).forward(); });
  }
  return tape.record(x.y, {&in.qkv, &in.past, &in.distances, &in.content_bias, &in.position_bias},
                     [backward = Backward{e, in.units, x}, dqkv = in.qkv.gradient(), dpast = in.past.gradient(),
                      ddistances = in.distances.gradient(), dcontent = in.content_bias.gradient(),
                      dposition = in.position_bias.gradient()](const Tensor& dy) {
                       const auto zeros = [](const Tensor& like) {
                         return like.defined() ? Tensor::zeros(like.shape()) : Tensor{};
                       };
                       const Arrays& kept = backward.x;
                       const Arrays d{zeros(kept.qkv),          zeros(kept.past),          zeros(kept.distances),
                                      zeros(kept.content_bias), zeros(kept.position_bias), dy};
                       backward.run(d);
                       add_gradient(dqkv, d.qkv);
                       add_gradient(dpast, d.past);
                       add_gradient(ddistances, d.distances);
                       add_gradient(dcontent, d.content_bias);
                       add_gradient(dposition, d.position_bias);
                     });
}

}  // namespace quipu::inline QUIPU_REAL_NS
