#include "grad/ops_embed.h"

#include "op_checks.h"

namespace quipu {
namespace {

using Vars = std::vector<Var>;

std::vector<std::int32_t> random_tokens(std::size_t n, std::uint64_t vocab, std::uint64_t site) {
  const Rng rng(1, 0, site);
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>(rng.below(i, vocab)));
  return tokens;
}

Operation embed(std::vector<std::int32_t> tokens, Shape leading) {
  return [=](Tape& tape, const Vars& v) { return Vars{embedding(tape, tokens, v[0], leading)}; };
}

}  // namespace

TEST_CASE("embedding takes rows, and its gradient sums them") {
  const Tensor table = random_tensor({5, 3}, 1);
  const std::vector<std::int32_t> tokens = {4, 0, 4, 2, 4, 4};
  Tape tape(true);
  const Var leaf = Var::leaf(table);
  const Var y = embedding(tape, tokens, leaf, {2, 3});
  CHECK(y.shape() == Shape{2, 3, 3});
  for (Index i = 0; i < 6; ++i)
    for (Index c = 0; c < 3; ++c)
      CHECK(y.value().data()[i * 3 + c] == table.data()[tokens[static_cast<std::size_t>(i)] * 3 + c]);
  tape.backward(y, Tensor::full({2, 3, 3}, 2));
  const double counts[] = {1, 0, 1, 0, 4};
  for (Index r = 0; r < 5; ++r)
    for (Index c = 0; c < 3; ++c) CHECK(leaf.gradient()->sum().data()[r * 3 + c] == 2 * counts[r]);
}

TEST_CASE("gradients of embeddings: differences, threads, and a bound slice that already holds something") {
  const auto tokens = random_tokens(700, 150, 3);
  const Tensor table = random_tensor({150, 7}, 1);
  check_gradients(embed({1, 1, 3, 0}, {4}), {random_tensor({4, 3}, 1)});
  check_threads(embed(tokens, {2, 350}), {table});

  const auto fresh = outputs_then_gradients(embed(tokens, {2, 350}), {table});
  const Tensor flat = Tensor::full({150 * 7 + 2}, 5);
  Tape tape(true);
  const Var y = embedding(tape, tokens, Var(table, Gradient::bound(flat.part(1, table.shape()))), {2, 350});
  tape.backward(y, random_tensor(y.shape(), 100));
  CHECK(flat.data()[0] == 5);
  CHECK(flat.data()[151 * 7 - 6] == 5);
  for (Index i = 0; i < table.count(); ++i)
    CHECK(flat.data()[1 + i] == doctest::Approx(5 + static_cast<double>(fresh[1].data()[i])).epsilon(1e-6));
}

TEST_CASE("a frequent token's gradient is summed in double") {
  constexpr Index kCount = 20000;
  Tape tape(true);
  const Var table = Var::leaf(Tensor::zeros({2, 1}));
  const Var y = embedding(tape, std::vector<std::int32_t>(kCount, 1), table, {kCount});
  tape.backward(y, Tensor::full(y.shape(), static_cast<Real>(0.1)));
  const double wanted = kCount * static_cast<double>(static_cast<Real>(0.1));
  CHECK(table.gradient()->sum().data()[1] == doctest::Approx(wanted).epsilon(1e-7));
}

TEST_CASE("learned positions") {
  const std::vector<std::int64_t> positions = {3, 4, 5, 0, 1, 2};
  const Tensor x = random_tensor({2, 3, 4}, 1);
  const Tensor table = random_tensor({6, 4}, 2);
  const Operation op = [&](Tape& tape, const Vars& v) { return Vars{add_positions(tape, v[0], v[1], positions)}; };
  check_gradients(op, {x, table});
  check_threads(op, {x, table});
  Tape tape(false);
  const Tensor y = add_positions(tape, x, table, positions).value();
  CHECK(y.data()[4 + 1] == x.data()[4 + 1] + table.data()[4 * 4 + 1]);
  Tensor row = x.part(0, {4}).clone();
  add_position_into(row.data(), 3, table);
  CHECK(same_bits(row, y.part(0, {4}).clone()));
}

TEST_CASE("tokens, positions and shapes that do not fit are refused with both numbers") {
  Tape tape(false);
  const Tensor table = random_tensor({5, 3}, 1);
  const std::vector<std::int32_t> bad = {0, 5};
  CHECK_THROWS_WITH_AS(embedding(tape, bad, table, {2}),
                       doctest::Contains("token id 5 is outside the vocabulary (size 5)"), InputError);
  const std::vector<std::int32_t> negative = {-1};
  CHECK_THROWS_AS(embedding(tape, negative, table, {1}), InputError);
  CHECK_THROWS_AS(embedding(tape, negative, table, {2}), ShapeError);
  const std::vector<std::int64_t> far = {0, 1LL << 33};
  CHECK_THROWS_WITH_AS(add_positions(tape, random_tensor({2, 3}, 2), table, far), doctest::Contains("8589934592"),
                       InputError);
  CHECK_THROWS_AS(add_positions(tape, random_tensor({2, 4}, 2), table, far), ShapeError);
  Real row[3];
  CHECK_THROWS_AS(embed_into(row, 7, table), InputError);
  embed_into(row, 4, table);
  CHECK(row[2] == table.data()[14]);
}

}  // namespace quipu
