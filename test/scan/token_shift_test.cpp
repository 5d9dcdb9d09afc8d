#include "scan/token_shift.h"

#include "op_checks.h"

using namespace quipu;

namespace {

constexpr Index kDim = 37;
const Layout kDocuments{3, 150, {150, 70, 0}, {{0, 40, 41, 128}, {64}, {}}};

/// The inputs: x, last, two weights, an offset for the second.
std::vector<Tensor> problem(const Layout& layout) {
  const Shape sequence{layout.batch, layout.length, kDim};
  return {random_tensor(sequence, 1), random_tensor({layout.batch, kDim}, 2), random_tensor({1, 1, kDim}, 3),
          random_tensor({kDim}, 4), random_tensor(sequence, 5)};
}

Operation shift(ShiftTowards towards, const Layout& layout) {
  return [towards, layout](Tape& tape, const std::vector<Var>& in) {
    TokenShift out = token_shift(tape, in[0], in[1], towards, {{in[2]}, {in[3], in[4]}}, layout);
    out.mixed.push_back(out.last);
    return out.mixed;
  };
}

/// Token by token: both blends and the last token.
std::vector<std::vector<double>> reference(const std::vector<Tensor>& in, ShiftTowards towards, const Layout& layout) {
  const auto number = [](const Tensor& x, Index i) { return static_cast<double>(x.data()[i]); };
  std::vector<std::vector<double>> out(3);
  for (Index b = 0; b < layout.batch; ++b) {
    std::vector<double> last(kDim), now(kDim);
    for (Index c = 0; c < kDim; ++c) last[static_cast<std::size_t>(c)] = number(in[1], b * kDim + c);
    const auto& starts = layout.starts.empty() ? std::vector<Index>{} : layout.starts[static_cast<std::size_t>(b)];
    for (Index t = 0; t < layout.length; ++t) {
      const bool valid = t < layout.lane_length(b);
      if (valid && std::count(starts.begin(), starts.end(), t) > 0) std::fill(last.begin(), last.end(), 0.0);
      for (Index c = 0; c < kDim; ++c) {
        const Index at = (b * layout.length + t) * kDim + c;
        const double x = number(in[0], at), previous = last[static_cast<std::size_t>(c)];
        for (const std::size_t j : {0u, 1u}) {
          const double w = number(in[2 + j], c) + (j == 1 ? number(in[4], at) : 0);
          const double current = towards == ShiftTowards::current ? w : 1 - w;
          out[j].push_back(valid ? current * x + (1 - current) * previous : 0);
        }
        now[static_cast<std::size_t>(c)] = x;
      }
      if (valid) last = now;
    }
    out[2].insert(out[2].end(), last.begin(), last.end());
  }
  return out;
}

}  // namespace

TEST_CASE("token shift equals the definition, at documents and padding") {
  for (const ShiftTowards towards : {ShiftTowards::current, ShiftTowards::previous})
    for (const Layout& layout : {Layout::plain(2, 1), Layout::plain(2, 64), Layout::plain(1, 65), kDocuments}) {
      std::vector<Tensor> in = problem(layout);
      const auto wanted = reference(in, towards, layout);
      for (Index b = 0; b < layout.batch; ++b)
        for (const Index which : {0, 4})
          std::fill(in[static_cast<std::size_t>(which)].data() + (b * layout.length + layout.lane_length(b)) * kDim,
                    in[static_cast<std::size_t>(which)].data() + (b + 1) * layout.length * kDim, Real{NAN});
      const auto got = outputs_then_gradients(shift(towards, layout), in);
      for (std::size_t i = 0; i < 3; ++i) CHECK(relative_error(got[i].span(), wanted[i]) < 1e-6);
    }
}

TEST_CASE("token shift without a token before is one with zeros") {
  const Layout layout = Layout::plain(2, 9);
  std::vector<Tensor> in = problem(layout);
  std::fill(in[1].span().begin(), in[1].span().end(), Real{0});
  Tape tape(false);
  const Var x(in[0]), weight(in[3]);
  const TokenShift with = token_shift(tape, x, Var(in[1]), ShiftTowards::current, {{weight}}, layout);
  const TokenShift without = token_shift(tape, x, {}, ShiftTowards::current, {{weight}}, layout);
  CHECK(same_bits(with.mixed[0].value(), without.mixed[0].value()));
  CHECK(same_bits(with.last.value(), without.last.value()));
}

TEST_CASE("token shift gradients agree with finite differences") {
  for (const ShiftTowards towards : {ShiftTowards::current, ShiftTowards::previous})
    for (const Layout& layout : {Layout::plain(2, 7), kDocuments})
      check_gradients(shift(towards, layout), problem(layout));
}

TEST_CASE("token shift does not depend on the number of threads") {
  check_threads(shift(ShiftTowards::previous, kDocuments), problem(kDocuments));
}

TEST_CASE("token shift step equals the whole") {
  const Layout layout = Layout::plain(2, 6);
  const std::vector<Tensor> in = problem(layout);
  for (const ShiftTowards towards : {ShiftTowards::current, ShiftTowards::previous}) {
    const auto wanted = reference(in, towards, layout);
    Tensor last = in[1].clone(), x({2, kDim}), y({2, kDim}), offset({2, kDim});
    std::vector<Tensor> got{Tensor(in[0].shape()), Tensor(in[0].shape())};
    for (Index t = 0; t < 6; ++t) {
      for (Index b = 0; b < 2; ++b) {
        std::copy_n(in[0].data() + (b * 6 + t) * kDim, kDim, x.data() + b * kDim);
        std::copy_n(in[4].data() + (b * 6 + t) * kDim, kDim, offset.data() + b * kDim);
      }
      for (const std::size_t j : {0u, 1u}) {
        token_shift_step(y.matrix(), x.matrix(), last, towards, in[2 + j], j == 1 ? offset.matrix() : Matrix{});
        for (Index b = 0; b < 2; ++b) std::copy_n(y.data() + b * kDim, kDim, got[j].data() + (b * 6 + t) * kDim);
      }
      keep_token(last, x.matrix());
    }
    for (const std::size_t j : {0u, 1u}) CHECK(relative_error(got[j].span(), wanted[j]) < 1e-6);
    CHECK(relative_error(last.span(), wanted[2]) < 1e-6);
  }
}

TEST_CASE("token shift names shapes that do not fit") {
  Tape tape(false);
  const Layout layout = Layout::plain(2, 9);
  const std::vector<Tensor> in = problem(layout);
  CHECK_THROWS_AS(token_shift(tape, Var(in[0]), {}, ShiftTowards::current, {{Var(in[0])}}, layout), ShapeError);
  CHECK_THROWS_AS(token_shift(tape, Var(in[0]), Var(in[3]), ShiftTowards::current, {{Var(in[3])}}, layout), ShapeError);
}
