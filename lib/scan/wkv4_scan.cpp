#include "scan/wkv4_scan.h"

#include <algorithm>
#include <array>

#include "base/blocks.h"
#include "tensor/kernels.h"
#include "tensor/wkv_rows.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

using kernels::kWkvChannels;
using kernels::WkvRows;
using kernels::WkvState;

constexpr std::array<Real, kWkvChannels> kZeros{};

/// The parts of a state, or of its gradient, [B,D] each.
struct Parts {
  Tensor a, b, p;

  bool defined() const { return a.defined(); }
  WkvState at(Index element) const { return {a.data() + element, b.data() + element, p.data() + element}; }
  static Parts zeros(const Shape& shape) { return {Tensor::zeros(shape), Tensor::zeros(shape), Tensor::zeros(shape)}; }
};

/// One number a channel of a block, on the stack.
struct Channels {
  alignas(64) std::array<Real, kWkvChannels> a{}, b{}, p{};

  WkvState state() { return {a.data(), b.data(), p.data()}; }
  void load(WkvState from, Index n) {
    std::copy_n(from.a, n, a.data());
    std::copy_n(from.b, n, b.data());
    std::copy_n(from.p, n, p.data());
  }
  void store(WkvState to, Index n) const {
    std::copy_n(a.data(), n, to.a);
    std::copy_n(b.data(), n, to.b);
    std::copy_n(p.data(), n, to.p);
  }
  void clear(Real offset) {
    a.fill(0), b.fill(0);
    p.fill(offset);
  }
};

/// A block of channels of one lane.
struct Unit {
  Index lane, channel, channels;
};

/// What both directions share.
struct Scan {
  Index length, dim;
  Tensor k, v, w, u;
  Parts before, after;
  std::vector<std::vector<Span>> chunks;  ///< of each lane
  std::vector<Index> first;               ///< of each lane, its first chunk in `kept`
  Tensor kept;  ///< states before every chunk, [chunks,3,D]; undefined without a backward pass

  /// Calls fn(unit) for all lanes and blocks of channels, in parallel.
  template <typename F>
  void for_units(const F& fn) const {
    const Index blocks = (dim + kWkvChannels - 1) / kWkvChannels;
    for_blocks(static_cast<Index>(chunks.size()) * blocks, 1, [&](Index i, Index) {
      const Index channel = i % blocks * kWkvChannels;
      fn(Unit{i / blocks, channel, std::min(kWkvChannels, dim - channel)});
    });
  }
  const std::vector<Span>& chunks_of(const Unit& unit) const { return chunks[static_cast<std::size_t>(unit.lane)]; }
  /// Where a token of the unit stands in k, and the unit in a state.
  Index at(const Unit& unit, Index token) const { return (unit.lane * length + token) * dim + unit.channel; }
  Index at(const Unit& unit) const { return unit.lane * dim + unit.channel; }
  WkvState kept_at(const Unit& unit, std::size_t chunk) const {
    const Index row = first[static_cast<std::size_t>(unit.lane)] + static_cast<Index>(chunk);
    Real* const from = kept.data() + row * 3 * dim + unit.channel;
    return {from, from + dim, from + 2 * dim};
  }
  WkvRows rows(const Unit& unit, const Span& chunk) const {
    const Index from = at(unit, chunk.begin);
    const auto parameter = [&](const Tensor& x) { return x.defined() ? x.data() + unit.channel : kZeros.data(); };
    return {chunk.end - chunk.begin, unit.channels, dim, k.data() + from, v.data() + from, parameter(w), parameter(u)};
  }
  void clear_padding(const Tensor& x, const Unit& unit) const {
    const auto& mine = chunks_of(unit);
    for (Index t = mine.empty() ? 0 : mine.back().end; t < length; ++t)
      std::fill_n(x.data() + at(unit, t), unit.channels, Real{0});
  }

  void forward(const Unit& unit, const Tensor& y) const {
    Channels state;
    state.clear(kernels::kWkvNothing);
    if (before.defined()) state.load(before.at(at(unit)), unit.channels);
    const auto& mine = chunks_of(unit);
    for (std::size_t c = 0; c < mine.size(); ++c) {
      if (mine[c].fresh) state.clear(kernels::kWkvNothing);
      if (kept.defined()) state.store(kept_at(unit, c), unit.channels);
      kernels::wkv_forward(rows(unit, mine[c]), state.state(), y.data() + at(unit, mine[c].begin));
    }
    clear_padding(y, unit);
    if (after.defined()) state.store(after.at(at(unit)), unit.channels);
  }
};

/// What the backward pass reads and fills; of the parameters one row a lane.
struct Gradients {
  Tensor dy;
  Parts after;  ///< of the final state; undefined: none
  Tensor k, v;
  Parts before;  ///< of the initial state; undefined: not wanted
  std::vector<double> w, u;

  void backward(const Scan& s, const Unit& unit) {
    Channels gradient;
    if (after.defined()) {
      gradient.load(after.at(s.at(unit)), unit.channels);
      add_choice(gradient, s.after.at(s.at(unit)), -1, unit.channels);
    }
    const auto& mine = s.chunks_of(unit);
    std::vector<Real> trace(static_cast<std::size_t>(kWkv4Chunk * kernels::kWkvTrace * unit.channels));
    for (std::size_t c = mine.size(); c-- > 0;) {
      backward(s, unit, c, gradient, trace.data());
      if (mine[c].fresh) gradient.clear(0);
    }
    for (const Tensor* x : {&k, &v}) s.clear_padding(*x, unit);
    if (!before.defined()) return;
    add_choice(gradient, s.before.at(s.at(unit)), 1, unit.channels);
    gradient.store(before.at(s.at(unit)), unit.channels);
  }

 private:
  /// With A = a e^p and B = b e^p held, p alone is worth dp - a da - b db: turns one into the other.
  static void add_choice(Channels& gradient, WkvState state, Real sign, Index n) {
    for (Index i = 0; i < n; ++i) {
      const auto c = static_cast<std::size_t>(i);
      gradient.p[c] += sign * (gradient.a[c] * state.a[i] + gradient.b[c] * state.b[i]);
    }
  }

  /// One chunk: runs its states again, then back over them.
  void backward(const Scan& s, const Unit& unit, std::size_t chunk, Channels& gradient, Real* trace) {
    const Span& span = s.chunks_of(unit)[chunk];
    const WkvRows rows = s.rows(unit, span);
    Channels state, sums;
    state.load(s.kept_at(unit, chunk), unit.channels);
    kernels::wkv_trace(rows, state.state(), trace, sums.p.data());
    kernels::multiply(gradient.a.data(), gradient.a.data(), sums.p.data(), unit.channels);
    kernels::multiply(gradient.b.data(), gradient.b.data(), sums.p.data(), unit.channels);
    const Index from = s.at(unit, span.begin);
    kernels::wkv_backward(rows, trace, dy.defined() ? dy.data() + from : nullptr, gradient.state(), k.data() + from,
                          v.data() + from, sums.a.data(), sums.b.data());
    for (Index i = 0; i < unit.channels; ++i) {
      const auto c = static_cast<std::size_t>(i), to = static_cast<std::size_t>(s.at(unit) + i);
      w[to] += static_cast<double>(sums.a[c]);
      u[to] += static_cast<double>(sums.b[c]);
    }
  }
};

/// Adds the rows of all lanes, in order.
Tensor sum_of_lanes(const std::vector<double>& rows, Index dim, const Shape& shape) {
  Tensor sum(shape);
  for (Index c = 0; c < dim; ++c) {
    double total = 0;
    for (std::size_t i = static_cast<std::size_t>(c); i < rows.size(); i += static_cast<std::size_t>(dim))
      total += rows[i];
    sum.data()[c] = static_cast<Real>(total);
  }
  return sum;
}

Scan checked(const Wkv4Input& in, const Layout& layout) {
  const Index dim = in.k.extent(-1);
  const Shape shape{layout.batch, layout.length, dim}, state{layout.batch, dim};
  require_shape("wkv scan: k", in.k.shape(), shape);
  require_shape("wkv scan: v", in.v.shape(), shape);
  for (const Var* parameter : {&in.log_decay, &in.bonus})
    if (parameter->defined() && parameter->value().count() != dim)
      throw ShapeError("wkv scan: {} decays or bonuses for {} channels", parameter->value().count(), dim);
  if (in.a.defined() != in.b.defined() || in.a.defined() != in.p.defined())
    throw ShapeError("wkv scan: a state needs all of a, b and p");
  if (in.a.defined())
    for (const Var* part : {&in.a, &in.b, &in.p}) require_shape("wkv scan: state", part->shape(), state);
  Scan scan{layout.length,
            dim,
            in.k.value(),
            in.v.value(),
            in.log_decay.value(),
            in.bonus.value(),
            {in.a.value(), in.b.value(), in.p.value()},
            {},
            {},
            {},
            {}};
  Index chunks = 0;
  for (Index lane = 0; lane < layout.batch; ++lane) {
    scan.first.push_back(chunks);
    scan.chunks.push_back(layout.chunks(lane, kWkv4Chunk));
    chunks += static_cast<Index>(scan.chunks.back().size());
  }
  return scan;
}

/// Gradient slots of what a scan reads.
struct Slots {
  std::shared_ptr<Gradient> k, v, w, u, a, b, p;

  explicit Slots(const Wkv4Input& in)
      : k(in.k.gradient()),
        v(in.v.gradient()),
        w(in.log_decay.gradient()),
        u(in.bonus.gradient()),
        a(in.a.gradient()),
        b(in.b.gradient()),
        p(in.p.gradient()) {}
};

void backward(const Scan& scan, std::span<const Tensor> dout, const Slots& slots) {
  const Shape state = {static_cast<Index>(scan.chunks.size()), scan.dim};
  const auto given = [&](std::size_t i) { return dout[i].defined() ? dout[i] : Tensor::zeros(state); };
  const std::vector<double> none(static_cast<std::size_t>(state.count()), 0);
  Gradients g{dout[0], {}, Tensor(scan.k.shape()), Tensor(scan.k.shape()), {}, none, none};
  if (dout[1].defined() || dout[2].defined() || dout[3].defined()) g.after = {given(1), given(2), given(3)};
  if (slots.a || slots.b || slots.p) g.before = Parts::zeros(state);
  scan.for_units([&](const Unit& unit) { g.backward(scan, unit); });
  add_gradient(slots.k, g.k);
  add_gradient(slots.v, g.v);
  if (slots.w) slots.w->add(sum_of_lanes(g.w, scan.dim, scan.w.shape()));
  if (slots.u) slots.u->add(sum_of_lanes(g.u, scan.dim, scan.u.shape()));
  add_gradient(slots.a, g.before.a);
  add_gradient(slots.b, g.before.b);
  add_gradient(slots.p, g.before.p);
}

}  // namespace

Wkv4Output wkv4_scan(Tape& tape, const Wkv4Input& in, const Layout& layout) {
  const OpScope op_scope("wkv4 scan");
  Scan scan = checked(in, layout);
  const std::initializer_list<const Var*> inputs{&in.k, &in.v, &in.log_decay, &in.bonus, &in.a, &in.b, &in.p};
  if (tape.needs(inputs)) {
    const auto& last = scan.chunks.back();
    scan.kept = Tensor({scan.first.back() + static_cast<Index>(last.size()), 3, scan.dim});
  }
  if (in.keep_state) scan.after = Parts::zeros({layout.batch, scan.dim});
  Tensor y(in.k.shape());
  scan.for_units([&](const Unit& unit) { scan.forward(unit, y); });
  std::vector<Tensor> outputs{std::move(y), scan.after.a, scan.after.b, scan.after.p};
  std::vector<Var> out = tape.record_all(
      std::move(outputs), inputs,
      [scan = std::move(scan), slots = Slots(in)](std::span<Tensor> dout) { backward(scan, dout, slots); });
  return {out[0], out[1], out[2], out[3]};
}

void wkv4_step(const Real* k, const Real* v, const Real* log_decay, const Real* bonus, Wkv4State state, Real* y,
               Index channels) {
  for (Index c = 0; c < channels; c += kWkvChannels) {
    const auto parameter = [c](const Real* x) { return x == nullptr ? kZeros.data() : x + c; };
    const Index n = std::min(kWkvChannels, channels - c);
    kernels::wkv_forward({1, n, n, k + c, v + c, parameter(log_decay), parameter(bonus)},
                         {state.a + c, state.b + c, state.p + c}, y + c);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
