#include "scan/aft_window.h"

#include <algorithm>
#include <limits>

#include "base/blocks.h"
#include "scan/head_rows.h"
#include "scan/positions.h"
#include "tensor/aft_tile.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

using kernels::AftQueries;
using kernels::AftSums;
using kernels::AftTile;

constexpr Index kChannels = 128;  ///< channels of a tile
constexpr Real kSafeSpread = 60;  ///< of the biases of a tile that is made of products: e^-60 is far from underflow
constexpr Real kLowest = -std::numeric_limits<Real>::infinity();

/// Tokens [begin, end) of a lane that are one document's positions from `position` on; its position 0 is row
/// `first_key` of the keys.
struct Document {
  Index lane, begin, end, position, first_key;
  Index first_block = 0;  ///< its block 0 among those of all documents

  Index last_position() const { return position + end - begin; }
  Index blocks() const { return (last_position() + kAftTile - 1) / kAftTile; }
};

/// Positions [begin, end) of one block.
struct Piece {
  Index begin, end;

  Index count() const { return end - begin; }
};

/// Channels [begin, end).
struct Channels {
  Index begin, end;
};

class AftMean {
 public:
  AftMean(const AftWindowInput& in, const Layout& layout)
      : length_(layout.length),
        dim_(in.k.extent(-1)),
        window_(in.window),
        k_(in.k.value()),
        v_(in.v.value()),
        bias_(in.bias.value()) {
    const Index past = in.k.extent(1) - length_, positions = bias_.extent(0);
    require_shape("aft: k", in.k.shape(), {layout.batch, past + length_, dim_});
    require_shape("aft: v", in.v.shape(), in.k.shape());
    require_shape("aft: position biases", bias_.shape(), {positions, positions});
    if (past < 0) throw ShapeError("aft: {} keys for {} tokens", in.k.extent(1), length_);
    for (Index lane = 0; lane < layout.batch; ++lane)
      for (const Span& span : layout.spans(lane)) {
        const Index before = span.fresh || in.past.empty() ? 0 : in.past[static_cast<std::size_t>(lane)];
        Document d{lane, span.begin, span.end, before, past + span.begin - before};
        d.first_block = key_blocks_;
        key_blocks_ += d.blocks();
        require_within("aft", {d.last_position() - 1}, positions);
        low_ = std::min(low_, d.position), high_ = std::max(high_, d.last_position());
        documents_.push_back(d);
      }
  }

  const Shape& key_shape() const { return k_.shape(); }

  /// y, and the logarithms of the sums where that is defined.
  void forward(const Tensor& y, const Tensor& log_sum) {
    make_tables();
    struct Job {
      const Document* document;
      Index block;
    };
    std::vector<Job> jobs;
    for (const Document& d : documents_)
      for (Index i = d.blocks(); i-- > d.position / kAftTile;) jobs.push_back({&d, i});
    const Index pieces = channel_pieces();
#pragma omp parallel
    {
      std::vector<Real> room(static_cast<std::size_t>(5 * kAftTile * kChannels));
#pragma omp for schedule(dynamic)
      for (Index job = 0; job < static_cast<Index>(jobs.size()) * pieces; ++job) {
        const auto [document, block] = jobs[static_cast<std::size_t>(job / pieces)];
        forward_block(*document, block, channels(job % pieces), y, log_sum, room.data());
      }
    }
    drop_tables();
  }

  struct Gradients {
    Tensor dy, y, log_sum;  ///< given
    Tensor k, v;            ///< added to
    Tensor bias;            ///< added to; undefined: not wanted
  };

  void backward(const Gradients& g) {
    make_tables();
    const Index pieces = channel_pieces();
    std::vector<std::pair<const Document*, Index>> jobs;
    for (const Document& d : documents_)
      for (Index j = 0; j < d.blocks(); ++j) jobs.emplace_back(&d, j);
#pragma omp parallel
    {
      std::vector<Real> room(static_cast<std::size_t>(4 * kAftTile * kChannels));
#pragma omp for schedule(dynamic)
      for (Index job = 0; job < static_cast<Index>(jobs.size()) * pieces; ++job) {
        const auto& [document, block] = jobs[static_cast<std::size_t>(job / pieces)];
        backward_keys(*document, block, channels(job % pieces), g, room.data());
      }
    }
    if (g.bias.defined()) backward_bias(g);
    drop_tables();
  }

 private:
  Index channel_pieces() const { return (dim_ + kChannels - 1) / kChannels; }
  Channels channels(Index piece) const { return {piece * kChannels, std::min(dim_, (piece + 1) * kChannels)}; }
  /// Positions of a block that the document has keys for, and those that are queries of this batch.
  static Piece keys_of(const Document& d, Index block) {
    return {block * kAftTile, std::min(d.last_position(), (block + 1) * kAftTile)};
  }
  static Piece queries_of(const Document& d, Index block) {
    return {std::max(d.position, block * kAftTile), std::min(d.last_position(), (block + 1) * kAftTile)};
  }
  Matrix key_rows(const Tensor& x, const Document& d, Piece p, Channels c) const {
    const Index row = d.lane * x.extent(1) + d.first_key + p.begin;
    return {x.data() + row * dim_ + c.begin, p.count(), c.end - c.begin, dim_};
  }
  Matrix query_rows(const Tensor& x, const Document& d, Piece p, Channels c) const {
    const Index row = d.lane * length_ + d.begin + p.begin - d.position;
    return {x.data() + row * dim_ + c.begin, p.count(), c.end - c.begin, dim_};
  }
  Matrix bias_rows(const Tensor& x, Piece queries, Piece keys) const {
    const Index stride = x.extent(1);
    return {x.data() + queries.begin * stride + keys.begin, queries.count(), keys.count(), stride};
  }
  AftTile direct_tile(const Document& d, Piece queries, Piece keys, Channels c) const {
    return {key_rows(k_, d, keys, c), key_rows(v_, d, keys, c), bias_rows(used_bias_, queries, keys),
            queries.begin - keys.begin + 1};
  }
  AftQueries queries(const Gradients& g, const Document& d, Piece p, Channels c) const {
    return {query_rows(g.dy, d, p, c), query_rows(g.y, d, p, c), query_rows(g.log_sum, d, p, c)};
  }

  Index blocks() const { return (high_ + kAftTile - 1) / kAftTile; }
  /// Whether the tile of query block i and key block j < i can be made of products.
  bool is_safe(Index i, Index j) const { return safe_[static_cast<std::size_t>(i * blocks() + j)] != 0; }
  const Real* key_top(const Document& d, Index block, Channels c) const {
    return key_top_.data() + (d.first_block + block) * dim_ + c.begin;
  }
  const Real* bias_top(Piece queries, Index block) const { return bias_top_.data() + queries.begin * blocks() + block; }

  void make_tables() {
    if (documents_.empty()) return;
    used_bias_ = bias_;
    if (window_ > 0) {
      used_bias_ = bias_.clone();
      for_blocks(high_, 1, [&](Index t, Index) {
        kernels::fill(used_bias_.data() + t * bias_.extent(1), 0, std::max<Index>(0, t - window_ + 1));
      });
    }
    bias_weights_ = Tensor({high_, high_}), bias_top_ = Tensor({high_, blocks()});
    safe_.assign(static_cast<std::size_t>(blocks() * blocks()), 1);
    for_blocks(blocks() - low_ / kAftTile, 1, [&](Index i, Index) { make_bias_weights(low_ / kAftTile + i); });
    key_top_ = Tensor({key_blocks_, dim_}), key_weights_ = Tensor(k_.shape()), value_weights_ = Tensor(k_.shape());
    for (const Document& d : documents_)
      for_blocks(d.blocks() - 1, 1, [&](Index j, Index) {
        const Piece keys = keys_of(d, j);
        const Channels all{0, dim_};
        kernels::aft_key_weights(key_rows(k_, d, keys, all), key_rows(v_, d, keys, all),
                                 key_top_.data() + (d.first_block + j) * dim_, key_rows(key_weights_, d, keys, all),
                                 key_rows(value_weights_, d, keys, all));
      });
  }

  void make_bias_weights(Index i) {
    for (Index t = std::max(low_, i * kAftTile); t < std::min(high_, (i + 1) * kAftTile); ++t)
      for (Index j = 0; j < i; ++j) {
        const Real* const w = used_bias_.data() + t * used_bias_.extent(1) + j * kAftTile;
        const auto [least, largest] = std::minmax_element(w, w + kAftTile);
        if (!(*largest - *least <= kSafeSpread)) safe_[static_cast<std::size_t>(i * blocks() + j)] = 0;
        bias_top_.data()[t * blocks() + j] = *largest;
        kernels::exp_shifted(bias_weights_.data() + t * high_ + j * kAftTile, w, *largest, kAftTile);
      }
  }

  void drop_tables() { used_bias_ = bias_weights_ = bias_top_ = key_top_ = key_weights_ = value_weights_ = {}; }

  void forward_block(const Document& d, Index i, Channels c, const Tensor& y, const Tensor& log_sum, Real* room) const {
    const Piece mine = queries_of(d, i);
    const auto matrix = [&](Index at) {
      return Matrix{room + at * kAftTile * kChannels, mine.count(), c.end - c.begin, kChannels};
    };
    const AftSums sums{matrix(0), matrix(1), matrix(2)};
    std::fill_n(room, kAftTile * kChannels, kLowest);
    std::fill_n(room + kAftTile * kChannels, 2 * kAftTile * kChannels, Real{0});
    for (Index j = 0; j < i; ++j) {
      const Piece keys = keys_of(d, j);
      if (!is_safe(i, j)) {
        kernels::aft_add(direct_tile(d, mine, keys, c), sums);
        continue;
      }
      const Matrix weights = bias_rows(bias_weights_, mine, keys);
      blas::multiply(matrix(3), weights, key_rows(value_weights_, d, keys, c));
      blas::multiply(matrix(4), weights, key_rows(key_weights_, d, keys, c));
      kernels::aft_merge(sums, matrix(3), matrix(4), key_top(d, j, c), bias_top(mine, j), blocks());
    }
    kernels::aft_add(direct_tile(d, mine, keys_of(d, i), c), sums);
    kernels::aft_finish(sums, query_rows(y, d, mine, c),
                        log_sum.defined() ? query_rows(log_sum, d, mine, c) : Matrix{});
  }

  /// All that reaches one block of keys. From tiles made of products: r = sum over queries of e^{w - top} g, q likewise
  /// of h;  dv = e^{k - top} r,  dk = e^{k - top} (v r - q).
  void backward_keys(const Document& d, Index j, Channels c, const Gradients& to, Real* room) const {
    const Piece keys = keys_of(d, j);
    const Matrix dk = key_rows(to.k, d, keys, c), dv = key_rows(to.v, d, keys, c);
    const auto matrix = [&](Index at, Index rows) {
      return Matrix{room + at * kAftTile * kChannels, rows, c.end - c.begin, kChannels};
    };
    bool products = false;
    for (Index i = std::max(j, d.position / kAftTile); i < d.blocks(); ++i) {
      const Piece mine = queries_of(d, i);
      if (i == j || !is_safe(i, j)) {
        kernels::aft_key_gradients(direct_tile(d, mine, keys, c), queries(to, d, mine, c), dk, dv);
        continue;
      }
      const Matrix g = matrix(0, mine.count()), h = matrix(1, mine.count());
      kernels::aft_scaled_gradients(queries(to, d, mine, c), key_top(d, j, c), bias_top(mine, j), blocks(), g, h);
      const Matrix weights = bias_rows(bias_weights_, mine, keys);
      blas::multiply_at(matrix(2, keys.count()), weights, g, products ? 1 : 0);
      blas::multiply_at(matrix(3, keys.count()), weights, h, products ? 1 : 0);
      products = true;
    }
    if (!products) return;
    for (Index s = 0; s < keys.count(); ++s) {
      const Real* const weights = key_rows(key_weights_, d, keys, c).row(s);
      Real *const r = matrix(2, keys.count()).row(s), *const q = matrix(3, keys.count()).row(s);
      kernels::multiply_add(dv.row(s), weights, r, dv.cols);
      kernels::multiply_add(dk.row(s), key_rows(value_weights_, d, keys, c).row(s), r, dk.cols);
      kernels::scale(q, -1, q, dk.cols);
      kernels::multiply_add(dk.row(s), weights, q, dk.cols);
    }
  }

  void backward_bias(const Gradients& g) const {
    struct Job {
      Index i, j;
    };
    std::vector<Job> jobs;
    for (Index i = low_ / kAftTile; i < blocks(); ++i)
      for (Index j = 0; j <= i; ++j)
        if (window_ == 0 || (i - j - 1) * kAftTile + 1 < window_) jobs.push_back({i, j});
#pragma omp parallel
    {
      std::vector<Real> room(static_cast<std::size_t>(2 * kAftTile * kChannels + kAftTile * kAftTile));
#pragma omp for schedule(dynamic)
      for (std::size_t job = 0; job < jobs.size(); ++job) {
        backward_bias_tile(jobs[job].i, jobs[job].j, g, room.data());
        clear_beyond_window(g.bias, jobs[job].i, jobs[job].j);
      }
    }
  }

  /// One tile of dw, from all documents:  dw = e^{w - top} sum over channels of (g e^{k - top} v - h e^{k - top}).
  void backward_bias_tile(Index i, Index j, const Gradients& to, Real* room) const {
    const Matrix shares{room + 2 * kAftTile * kChannels, kAftTile, kAftTile, kAftTile};
    std::fill_n(shares.data, kAftTile * kAftTile, Real{0});
    const bool products = j < i && is_safe(i, j);
    for (const Document& d : documents_) {
      const Piece mine = queries_of(d, i);
      if (mine.count() <= 0) continue;
      const Piece keys = keys_of(d, j);
      const Matrix share = shares.slice(mine.begin - i * kAftTile, mine.end - i * kAftTile).columns(0, keys.count());
      for (Index piece = 0; piece < channel_pieces(); ++piece) {
        const Channels c = channels(piece);
        const AftQueries from = queries(to, d, mine, c);
        if (!products) {
          kernels::aft_bias_gradients(direct_tile(d, mine, keys, c), from, share);
          continue;
        }
        const Matrix g{room, mine.count(), c.end - c.begin, kChannels};
        const Matrix h{room + kAftTile * kChannels, mine.count(), c.end - c.begin, kChannels};
        kernels::aft_scaled_gradients(from, key_top(d, j, c), bias_top(mine, j), blocks(), g, h);
        blas::multiply_bt(share, g, key_rows(value_weights_, d, keys, c), 1);
        blas::multiply_bt(share, h, key_rows(key_weights_, d, keys, c), 1, -1);
      }
    }
    for (Index t = std::max(low_, i * kAftTile); t < std::min(high_, (i + 1) * kAftTile); ++t) {
      const Index n = std::min(kAftTile, high_ - j * kAftTile);
      Real *const row = shares.row(t - i * kAftTile), *const out = to.bias.data() + t * bias_.extent(1) + j * kAftTile;
      if (products) kernels::multiply(row, row, bias_weights_.data() + t * high_ + j * kAftTile, n);
      kernels::add_into(out, row, n);
    }
  }

  /// Beyond the window the bias takes no part.
  void clear_beyond_window(const Tensor& dw, Index i, Index j) const {
    if (window_ == 0) return;
    for (Index t = i * kAftTile; t < std::min(high_, (i + 1) * kAftTile); ++t) {
      const Index end = std::min((j + 1) * kAftTile, t - window_ + 1);
      if (end > j * kAftTile) kernels::fill(dw.data() + t * dw.extent(1) + j * kAftTile, 0, end - j * kAftTile);
    }
  }

  Index length_, dim_, window_;
  Tensor k_, v_, bias_;
  std::vector<Document> documents_;
  Index low_ = std::numeric_limits<Index>::max(), high_ = 0, key_blocks_ = 0;  ///< of all positions that are queries

  // Tables, made for one pass.
  Tensor used_bias_;                              ///< the biases within the window
  Tensor bias_weights_, bias_top_;                ///< e^{w - top} [high,high] below the diagonal; top [high,blocks]
  Tensor key_weights_, value_weights_, key_top_;  ///< e^{k - top}, times v;  top [key blocks,D]
  std::vector<char> safe_;                        ///< [blocks,blocks]
};

}  // namespace

Var aft_window(Tape& tape, const AftWindowInput& in, const Layout& layout) {
  const OpScope op_scope("aft window");
  AftMean mean(in, layout);
  const bool keep = tape.needs({&in.k, &in.v, &in.bias});
  const Tensor y({layout.batch, layout.length, in.k.extent(-1)});
  const Tensor log_sum = keep ? Tensor(y.shape()) : Tensor{};
  mean.forward(y, log_sum);
  fill_padding(y, layout, 0);
  return tape.record(y, {&in.k, &in.v, &in.bias},
                     [mean, y, log_sum, dk = in.k.gradient(), dv = in.v.gradient(), dw = in.bias.gradient(),
                      bias = in.bias.shape()](const Tensor& dy) mutable {
                       const AftMean::Gradients g{dy,
                                                  y,
                                                  log_sum,
                                                  Tensor::zeros(mean.key_shape()),
                                                  Tensor::zeros(mean.key_shape()),
                                                  dw ? Tensor::zeros(bias) : Tensor{}};
                       mean.backward(g);
                       add_gradient(dk, g.k);
                       add_gradient(dv, g.v);
                       add_gradient(dw, g.bias);
                     });
}

void aft_window_step(Matrix k, Matrix v, Real* bias, Real* y, Real* scratch) {
  const Index dim = k.cols;
  std::fill_n(scratch, dim, kLowest);
  std::fill_n(scratch + dim, 2 * dim, Real{0});
  const Index block = k.rows < 64 ? dim : kAftTile;
  for_blocks(dim, block, [&](Index begin, Index end) {
    const auto row = [&](Real* from) { return Matrix{from + begin, 1, end - begin, dim}; };
    const AftSums sums{row(scratch), row(scratch + dim), row(scratch + 2 * dim)};
    kernels::aft_add({k.columns(begin, end), v.columns(begin, end), {bias, 1, k.rows, k.rows}, k.rows}, sums);
    kernels::aft_finish(sums, row(y), {});
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS
