#include "scan/short_conv.h"

#include <algorithm>
#include <numeric>

#include "scan/head_rows.h"
#include "tensor/kernels.h"
#include "tensor/kernels_channel.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kTokens = 64, kTile = 256;  // a job: its rows stay in the cache

/// Tokens [begin, end) of one document of a lane.
struct Piece {
  Index lane, begin, end;
  Span document;
};

/// Channels [begin, begin + width), within one output.
struct Tile {
  Index begin, width, part, part_begin;
};

std::vector<Piece> pieces_of(const Layout& layout) {
  std::vector<Piece> pieces;
  for (Index b = 0; b < layout.batch; ++b)
    for (const Span& document : layout.spans(b))
      for (Index t = document.begin; t < document.end; t += kTokens)
        pieces.push_back({b, t, std::min(document.end, t + kTokens), document});
  return pieces;
}

std::vector<Tile> tiles_of(const std::vector<Index>& parts) {
  std::vector<Tile> tiles;
  Index first = 0;
  for (std::size_t p = 0; p < parts.size(); first += parts[p++])
    for (Index c = 0; c < parts[p]; c += kTile)
      tiles.push_back({first + c, std::min(kTile, parts[p] - c), static_cast<Index>(p), c});
  return tiles;
}

/// The weight [C,1,W] as rows [W,C].
Tensor taps_of(const Tensor& weight) {
  const Index channels = weight.extent(0), width = weight.extent(-1);
  Tensor taps({width, channels});
  for (Index c = 0; c < channels; ++c)
    for (Index j = 0; j < width; ++j) taps.data()[j * channels + c] = weight.data()[c * width + j];
  return taps;
}

/// Inputs, or their gradients, addressed by token: x at its own, before it the incoming state.
struct InputRows {
  Tensor x, state;  // [B,T,C], [B,W-1,C]
  Index width;

  /// Channel c of token t of a document; null before a document that starts here, or where there is no state.
  Real* at(Index lane, const Span& document, Index t, Index c) const {
    if (t >= document.begin) return x.data() + (lane * x.extent(1) + t) * x.extent(2) + c;
    if (document.fresh || !state.defined()) return nullptr;
    return state.data() + (lane * (width - 1) + t + width - 1) * x.extent(2) + c;
  }
};

struct Convolution {
  Layout layout;
  Activation activation;
  InputRows in;
  Tensor taps, bias;
  std::vector<Index> parts;
  std::vector<Piece> pieces;
  std::vector<Tile> tiles;

  Index channels() const { return in.x.extent(2); }
  Index width() const { return in.width; }
  Index jobs() const { return static_cast<Index>(pieces.size() * tiles.size()); }
  const Piece& piece(Index job) const { return pieces[static_cast<std::size_t>(job) / tiles.size()]; }
  const Tile& tile(Index job) const { return tiles[static_cast<std::size_t>(job) % tiles.size()]; }

  /// The last document of a lane; an empty one, in which the state goes on, where all is padding.
  Span last_document(Index lane) const {
    const std::vector<Span> spans = layout.spans(lane);
    return spans.empty() ? Span{0, 0, false} : spans.back();
  }
  Real* part_row(std::span<const Tensor> ys, const Tile& tile, Index lane, Index t) const {
    const Tensor& y = ys[static_cast<std::size_t>(tile.part)];
    return y.data() + (lane * layout.length + t) * y.extent(2) + tile.part_begin;
  }

  void forward(std::span<const Tensor> ys) const;
  Tensor last_inputs() const;
  void backward(std::span<const Tensor> dys, const InputRows& d, Tensor dweight, Tensor dbias) const;
  void add_last_inputs(const Tensor& dstate, const InputRows& d) const;
};

/// What a thread needs: addresses of rows, and in the backward pass gradients before the activation.
class Worker {
 public:
  Worker(const Convolution& conv, bool backward)
      : conv_(conv),
        zero_(static_cast<std::size_t>(kTile), 0),
        taps_(static_cast<std::size_t>(conv.width())),
        rows_(static_cast<std::size_t>(kTokens + 2 * conv.width())),
        pre_(backward ? zero_.size() : 0),
        gradients_(backward ? static_cast<std::size_t>((kTokens + conv.width()) * kTile) : 0) {}

  void forward(const Piece& p, const Tile& tile, std::span<const Tensor> ys) {
    point_at_inputs(p, tile, p.end);
    for (Index t = p.begin; t < p.end; ++t) {
      Real* const y = conv_.part_row(ys, tile, p.lane, t);
      convolve(y, t - p.begin, tile);
      if (conv_.activation != Activation::identity) kernels::activate(conv_.activation, y, y, tile.width);
    }
  }

  /// Gradients of the inputs into `d`, of taps and bias ([W+1,C] of this piece) into `weights`.
  void backward(const Piece& p, const Tile& tile, std::span<const Tensor> dys, const InputRows& d, Matrix weights) {
    const Index width = conv_.width(), ahead = std::min(p.end + width - 1, p.document.end);
    point_at_inputs(p, tile, ahead);
    for (Index t = p.begin; t < ahead; ++t) before_activation(gradient(t - p.begin), dys, p, tile, t);
    for (Index j = 0; j <= width; ++j) kernels::fill(weights.row(j) + tile.begin, 0, tile.width);
    for (Index t = p.begin; t < p.end; ++t) {
      const Real* const g = gradient(t - p.begin);
      for (Index j = 0; j < width; ++j)
        kernels::multiply_add(weights.row(j) + tile.begin, g, rows_[static_cast<std::size_t>(t - p.begin + j)],
                              tile.width);
      kernels::add_into(weights.row(width) + tile.begin, g, tile.width);
    }
    spread(p, tile, d, ahead);
  }

 private:
  Real* gradient(Index row) { return gradients_.data() + row * kTile; }

  /// Row i is token begin - (W-1) + i.
  void point_at_inputs(const Piece& p, const Tile& tile, Index end) {
    const Index first = p.begin - conv_.width() + 1;
    for (Index t = first; t < end; ++t) {
      const Real* const row = conv_.in.at(p.lane, p.document, t, tile.begin);
      rows_[static_cast<std::size_t>(t - first)] = row != nullptr ? row : zero_.data();
    }
    point_at_taps(tile, false);
  }

  void point_at_taps(const Tile& tile, bool backwards) {
    const Index width = conv_.width();
    for (Index j = 0; j < width; ++j)
      taps_[static_cast<std::size_t>(backwards ? width - 1 - j : j)] =
          conv_.taps.data() + j * conv_.channels() + tile.begin;
  }

  void convolve(Real* y, Index row, const Tile& tile) {
    kernels::weighted_rows(y, conv_.bias.defined() ? conv_.bias.data() + tile.begin : nullptr, taps_.data(),
                           rows_.data() + row, conv_.width(), tile.width);
  }

  void before_activation(Real* g, std::span<const Tensor> dys, const Piece& p, const Tile& tile, Index t) {
    const Real* const dy = conv_.part_row(dys, tile, p.lane, t);
    if (conv_.activation == Activation::identity) {
      std::copy_n(dy, tile.width, g);
      return;
    }
    convolve(pre_.data(), t - p.begin, tile);
    if (keeps_output(conv_.activation)) kernels::activate(conv_.activation, pre_.data(), pre_.data(), tile.width);
    kernels::activate_backward(conv_.activation, g, dy, pre_.data(), tile.width);
  }

  /// dx_s = sum_i w_{W-1-i} g_{s+i}, and the same of the incoming state, before token 0.
  void spread(const Piece& p, const Tile& tile, const InputRows& d, Index ahead) {
    const Index width = conv_.width();
    const bool from_state = p.begin == 0 && !p.document.fresh && d.state.defined();
    const Index first = from_state ? 1 - width : p.begin;
    point_at_taps(tile, true);
    for (Index t = first; t < p.end + width - 1; ++t)
      rows_[static_cast<std::size_t>(t - first)] = t < p.begin || t >= ahead ? zero_.data() : gradient(t - p.begin);
    for (Index s = first; s < p.end; ++s)
      kernels::weighted_rows(d.at(p.lane, p.document, s, tile.begin), nullptr, taps_.data(), rows_.data() + s - first,
                             width, tile.width);
  }

  const Convolution& conv_;
  std::vector<Real> zero_;
  std::vector<const Real*> taps_, rows_;
  std::vector<Real> pre_, gradients_;
};

void Convolution::forward(std::span<const Tensor> ys) const {
#pragma omp parallel
  {
    Worker worker(*this, false);
#pragma omp for schedule(static)
    for (Index job = 0; job < jobs(); ++job) worker.forward(piece(job), tile(job), ys);
  }
  for (const Tensor& y : ys) fill_padding(y, layout, 0);
}

Tensor Convolution::last_inputs() const {
  Tensor state = Tensor::zeros({layout.batch, width() - 1, channels()});
  for (Index b = 0; b < layout.batch; ++b) {
    const Span document = last_document(b);
    for (Index i = 0; i < width() - 1; ++i)
      if (const Real* row = in.at(b, document, document.end - width() + 1 + i, 0); row != nullptr)
        std::copy_n(row, channels(), state.data() + (b * (width() - 1) + i) * channels());
  }
  return state;
}

void Convolution::backward(std::span<const Tensor> dys, const InputRows& d, Tensor dweight, Tensor dbias) const {
  const Index rows = width() + 1, count = static_cast<Index>(pieces.size());
  const Tensor sums({std::max<Index>(count, 1), rows, channels()});  // of each piece
#pragma omp parallel
  {
    Worker worker(*this, true);
#pragma omp for schedule(static)
    for (Index job = 0; job < jobs(); ++job) {
      const Index index = job / static_cast<Index>(tiles.size());
      worker.backward(piece(job), tile(job), dys, d,
                      {sums.data() + index * rows * channels(), rows, channels(), channels()});
    }
  }
  fill_padding(d.x, layout, 0);
#pragma omp parallel for schedule(static)
  for (Index c = 0; c < channels(); ++c)
    for (Index j = 0; j < rows; ++j) {
      double total = 0;
      for (Index i = 0; i < count; ++i) total += static_cast<double>(sums.data()[(i * rows + j) * channels() + c]);
      if (j < width())
        dweight.data()[c * width() + j] = static_cast<Real>(total);
      else if (dbias.defined())
        dbias.data()[c] = static_cast<Real>(total);
    }
}

void Convolution::add_last_inputs(const Tensor& dstate, const InputRows& d) const {
  for (Index b = 0; b < layout.batch; ++b) {
    const Span document = last_document(b);
    for (Index i = 0; i < width() - 1; ++i)
      if (Real* row = d.at(b, document, document.end - width() + 1 + i, 0); row != nullptr)
        kernels::add_into(row, dstate.data() + (b * (width() - 1) + i) * channels(), channels());
  }
}

Convolution checked(const ShortConvInput& input, const Layout& layout) {
  const Index channels = input.x.extent(2), width = input.weight.extent(-1);
  require_shape("short convolution: x", input.x.shape(), {layout.batch, layout.length, channels});
  if (input.weight.value().count() != channels * width || input.weight.extent(0) != channels)
    throw ShapeError("short convolution: a weight of shape {} for {} channels", input.weight.shape().text(), channels);
  if (width < 2) throw ShapeError("short convolution: width {}; it must be at least 2", width);
  if (input.bias.defined()) require_shape("short convolution: bias", input.bias.shape(), {channels});
  if (input.state.defined())
    require_shape("short convolution: state", input.state.shape(), {layout.batch, width - 1, channels});
  std::vector<Index> parts = input.parts.empty() ? std::vector<Index>{channels} : input.parts;
  if (const Index all = std::accumulate(parts.begin(), parts.end(), Index{0}); all != channels)
    throw ShapeError("short convolution: {} channels in {} parts of {} channels", channels, parts.size(), all);
  return {layout,
          input.activation,
          {input.x.value(), input.state.value(), width},
          taps_of(input.weight.value()),
          input.bias.value(),
          parts,
          pieces_of(layout),
          tiles_of(parts)};
}

}  // namespace

ShortConvOutput short_conv(Tape& tape, const ShortConvInput& input, const Layout& layout) {
  const OpScope op_scope("short conv");
  Convolution conv = checked(input, layout);
  std::vector<Tensor> outputs;
  for (const Index part : conv.parts) outputs.emplace_back(Shape{layout.batch, layout.length, part});
  conv.forward(outputs);
  outputs.push_back(conv.last_inputs());
  auto out = tape.record_all(
      std::move(outputs), {&input.x, &input.weight, &input.bias, &input.state},
      [conv = std::move(conv), shape = input.weight.shape(), dx = input.x.gradient(), dw = input.weight.gradient(),
       db = input.bias.gradient(), ds = input.state.gradient()](std::span<Tensor> dout) {
        for (std::size_t p = 0; p < conv.parts.size(); ++p)
          if (!dout[p].defined()) dout[p] = Tensor::zeros({conv.layout.batch, conv.layout.length, conv.parts[p]});
        const InputRows d{Tensor(conv.in.x.shape()),
                          conv.in.state.defined() ? Tensor::zeros(conv.in.state.shape()) : Tensor{}, conv.width()};
        const Tensor dweight(shape), dbias = conv.bias.defined() ? Tensor(conv.bias.shape()) : Tensor{};
        conv.backward(dout.first(conv.parts.size()), d, dweight, dbias);
        if (dout.back().defined()) conv.add_last_inputs(dout.back(), d);
        add_gradient(dx, d.x);
        add_gradient(dw, dweight);
        add_gradient(db, dbias);
        add_gradient(ds, d.state);
      });
  const Var state = out.back();
  out.pop_back();
  return {std::move(out), state};
}

void short_conv_step(Matrix y, Matrix x, const Tensor& weight, const Tensor& bias, Activation activation,
                     Tensor& state) {
  const Index width = weight.extent(-1), channels = x.cols;
  for (Index b = 0; b < x.rows; ++b) {
    Real *const past = state.data() + b * (width - 1) * channels, *const out = y.row(b);
    const Real* const now = x.row(b);
    for (Index c = 0; c < channels; ++c) {
      const Real* const w = weight.data() + c * width;
      const Real value = now[c];
      Real sum = bias.defined() ? bias.data()[c] : Real{0};
      for (Index j = 0; j < width - 1; ++j) {
        Real& held = past[j * channels + c];
        sum += w[j] * held;
        held = j + 2 < width ? past[(j + 1) * channels + c] : value;
      }
      out[c] = sum + w[width - 1] * value;
    }
    kernels::activate(activation, out, out, channels);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
