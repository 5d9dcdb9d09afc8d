#include "text/recall_bindings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace quipu {
namespace {

constexpr std::int32_t kNoTarget = -1;

Index whole(const TaskValues& values, const char* name, Index otherwise = 0) {
  const auto at = values.find(name);
  return at == values.end() ? otherwise : static_cast<Index>(at->second);
}

/// A task in which a token is bound to the one behind it. The query for a key is `offset` positions before the place
/// where its answer is scored.
class BindingTask : public RecallTask {
 public:
  explicit BindingTask(Index offset) : offset_(static_cast<std::size_t>(offset)) {}

  TaskFaults check(std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets) const final {
    struct Binding {
      std::int32_t key, value = kNoTarget;
      Index others = 0;
    };
    std::vector<Binding> bindings;  // of the keys that are queried
    for (std::size_t t = offset_; t < inputs.size(); ++t)
      if (targets[t] != kNoTarget) bindings.push_back({inputs[t - offset_]});
    std::ranges::sort(bindings, {}, &Binding::key);
    const auto find = [&](std::int32_t key) { return std::ranges::lower_bound(bindings, key, {}, &Binding::key); };
    TaskFaults faults;
    std::size_t bound = 1;  // neighbours (bound - 1, bound) and before are in the table
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      if (targets[t] == kNoTarget) continue;
      const std::size_t query = t - std::min(t, offset_);
      for (; bound <= query; ++bound) {
        const auto at = find(inputs[bound - 1]);
        if (at == bindings.end() || at->key != inputs[bound - 1]) continue;
        if (at->value == kNoTarget) at->value = inputs[bound];
        at->others += at->value != inputs[bound] ? 1 : 0;
      }
      const auto binding = find(inputs[query]);
      const bool known = binding != bindings.end() && binding->key == inputs[query];
      faults.wrong += known && binding->value == targets[t] ? 0 : 1;
      faults.rebindings += known ? binding->others : 0;
    }
    return faults;
  }

  Index source_of(std::span<const std::int32_t> inputs, Index t) const final {
    const Index query = t - static_cast<Index>(offset_);
    for (Index p = query; p-- > 0;)
      if (inputs[static_cast<std::size_t>(p)] == inputs[static_cast<std::size_t>(query)]) return p + 1;
    return -1;
  }

 private:
  std::size_t offset_;
};

/// Multi-query associative recall: key value key value .., then queries among filler.
class Mqar final : public BindingTask {
 public:
  explicit Mqar(const TaskValues& v)
      : BindingTask(0),
        vocab_(whole(v, "vocab")),
        length_(whole(v, "length")),
        pairs_(whole(v, "pairs", std::max<Index>(1, length_ / 16))),
        queries_(whole(v, "queries", pairs_)),
        random_filler_(whole(v, "filler") == 1),
        first_value_(vocab_ / 2) {
    if (queries_ > pairs_)
      throw UsageError("--queries {}: there are {} pairs, and each is queried once at most; give --queries {} or less",
                       queries_, pairs_, pairs_);
    if (pairs_ > first_value_ - kFirstSymbol)
      throw UsageError("--pairs {}: a vocabulary of {} has {} keys; give a larger --vocab", pairs_, vocab_,
                       first_value_ - kFirstSymbol);
    const Index places = (length_ - 2 * pairs_) / 2;
    if (length_ < 2 * pairs_ || places < queries_)
      throw UsageError("--length {}: {} pairs and {} queries take {} tokens; give more, or fewer --pairs", length_,
                       pairs_, queries_, 2 * (pairs_ + queries_));
    for (Index i = 1; i <= places; ++i) waiting_.push_back(std::pow(static_cast<double>(i), 1 - v.at("power")));
  }

  Index vocab() const override { return vocab_; }
  Index length() const override { return length_; }
  std::string symbol(std::int32_t token) const override {
    return token < first_value_ ? fmt::format("k{}", token) : fmt::format("v{}", token);
  }
  double chance() const override { return 1.0 / static_cast<double>(vocab_ - first_value_); }
  std::optional<double> chance_among_seen() const override { return 1.0 / static_cast<double>(pairs_); }

  void draw(Draw& draw, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const override {
    const auto pairs = static_cast<std::size_t>(pairs_), queries = static_cast<std::size_t>(queries_);
    std::vector<std::int32_t> keys(pairs), values(pairs);
    draw.distinct(first_value_ - kFirstSymbol, kFirstSymbol, keys);
    draw.distinct(vocab_ - first_value_, first_value_, values);
    std::ranges::fill(inputs, kBlankToken);
    std::ranges::fill(targets, kNoTarget);
    for (std::size_t i = 0; i < pairs; ++i) inputs[2 * i] = keys[i], inputs[2 * i + 1] = values[i];
    std::vector<std::int32_t> asked(queries);
    if (queries == pairs)
      for (std::size_t i = 0; i < queries; ++i) asked[i] = static_cast<std::int32_t>(i);
    else
      draw.distinct(pairs_, 0, asked);
    const std::vector<std::size_t> places = places_of(draw);
    for (std::size_t i = 0; i < queries; ++i) {
      const std::size_t at = 2 * (pairs + places[i]), pair = static_cast<std::size_t>(asked[i]);
      inputs[at] = keys[pair];
      targets[at] = values[pair];
    }
    if (random_filler_) fill(draw, keys, inputs.subspan(2 * pairs));
  }

 private:
  /// Different places for the queries, drawn one after another with weights i^(power-1): exponential clocks of those
  /// rates ring in the same order.
  std::vector<std::size_t> places_of(Draw& draw) const {
    std::vector<std::pair<double, std::size_t>> clocks(waiting_.size());
    for (std::size_t i = 0; i < clocks.size(); ++i) clocks[i] = {-std::log(draw.uniform()) * waiting_[i], i};
    const auto middle = clocks.begin() + static_cast<std::ptrdiff_t>(queries_);
    std::partial_sort(clocks.begin(), middle, clocks.end());
    std::vector<std::size_t> places;
    for (auto at = clocks.begin(); at != middle; ++at) places.push_back(at->second);
    return places;
  }

  /// Filler of any tokens but the example's keys.
  void fill(Draw& draw, std::vector<std::int32_t> keys, std::span<std::int32_t> rest) const {
    std::ranges::sort(keys);
    for (std::int32_t& token : rest) {
      if (token != kBlankToken) continue;
      auto drawn = static_cast<std::int32_t>(kFirstSymbol + draw.below(vocab_ - kFirstSymbol - pairs_));
      for (const std::int32_t key : keys) drawn += key <= drawn ? 1 : 0;
      token = drawn;
    }
  }

  Index vocab_, length_, pairs_, queries_;
  bool random_filler_;
  Index first_value_;
  std::vector<double> waiting_;  // mean time of each place's clock
};

/// Key value key value .. key mark: what belongs to the last key?
class Associative final : public BindingTask {
 public:
  explicit Associative(const TaskValues& v)
      : BindingTask(1), pairs_(whole(v, "pairs")), keys_(whole(v, "keys")), values_(whole(v, "values")) {
    if (pairs_ > std::min(keys_, values_))
      throw UsageError("--pairs {}: keys and values are all different, and there are {} keys and {} values; give more",
                       pairs_, keys_, values_);
  }

  Index vocab() const override { return kFirstSymbol + keys_ + values_; }
  Index length() const override { return 2 * pairs_ + 2; }
  std::string symbol(std::int32_t token) const override {
    const Index key = token - kFirstSymbol;
    if (key >= keys_) return fmt::format("{}", key - keys_);
    return keys_ <= 26 ? std::string(1, static_cast<char>('a' + key)) : fmt::format("k{}", key);
  }
  double chance() const override { return 1.0 / static_cast<double>(values_); }
  std::optional<double> chance_among_seen() const override { return 1.0 / static_cast<double>(pairs_); }

  void draw(Draw& draw, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const override {
    const auto pairs = static_cast<std::size_t>(pairs_);
    std::vector<std::int32_t> keys(pairs), values(pairs);
    draw.distinct(keys_, kFirstSymbol, keys);
    draw.distinct(values_, kFirstSymbol + keys_, values);
    for (std::size_t i = 0; i < pairs; ++i) inputs[2 * i] = keys[i], inputs[2 * i + 1] = values[i];
    const auto asked = static_cast<std::size_t>(draw.below(pairs_));
    inputs[2 * pairs] = keys[asked];
    inputs[2 * pairs + 1] = kMarkToken;
    std::ranges::fill(targets, kNoTarget);
    targets[2 * pairs + 1] = values[asked];
  }

 private:
  Index pairs_, keys_, values_;
};

/// Noise with one mark in it, and a mark at the end: what stood behind the first?
class Induction final : public BindingTask {
 public:
  explicit Induction(const TaskValues& v)
      : BindingTask(0), length_(whole(v, "length")), symbols_(whole(v, "symbols")) {}

  Index vocab() const override { return kFirstSymbol + symbols_; }
  Index length() const override { return length_; }
  std::string symbol(std::int32_t token) const override { return fmt::format("{}", token - kFirstSymbol); }
  double chance() const override { return 1.0 / static_cast<double>(symbols_); }

  void draw(Draw& draw, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const override {
    for (std::int32_t& token : inputs) token = static_cast<std::int32_t>(kFirstSymbol + draw.below(symbols_));
    std::ranges::fill(targets, kNoTarget);
    const auto at = static_cast<std::size_t>(draw.below(length_ - 2));
    inputs[at] = inputs.back() = kMarkToken;
    targets.back() = inputs[at + 1];
  }

 private:
  Index length_, symbols_;
};

template <typename Task>
std::unique_ptr<RecallTask> make(const TaskValues& values) {
  return std::make_unique<Task>(values);
}

}  // namespace

std::vector<RecallTaskKind> binding_task_kinds() {
  return {
      {"mqar",
       "multi-query associative recall: pairs of key and value, then queries for the values",
       "arXiv:2312.04927",
       {{.name = "vocab", .help = "tokens: half of them keys, half values", .standard = 8192, .min = 8, .max = 1 << 30},
        {.name = "length", .help = "tokens of an example", .standard = 64, .min = 4},
        {.name = "pairs", .help = "pairs of key and value", .standard = {}, .standard_text = "length/16"},
        {.name = "queries", .help = "keys that are queried, each once", .standard = {}, .standard_text = "pairs"},
        {.name = "power",
         .help = "query places i = 1, 2, .. are drawn with weights i^(X-1); 1: evenly",
         .standard = 0.01,
         .min = 0,
         .max = 10,
         .whole = false},
        {.name = "filler",
         .help = "what stands between queries; random: any token but the example's keys",
         .standard = 0,
         .choices = {"blank", "random"}}},
       make<Mqar>},
      {"associative",
       "associative retrieval: pairs of key and value, then one query",
       "arXiv:1610.06258, as in arXiv:2207.06881",
       {{.name = "pairs", .help = "pairs of key and value", .standard = 4},
        {.name = "keys", .help = "different keys", .standard = 26, .max = 1 << 20},
        {.name = "values", .help = "different values", .standard = 10, .max = 1 << 20}},
       make<Associative>},
      {"induction",
       "induction head: what stood behind the mark, when it comes again at the end?",
       "arXiv:2212.14052, arXiv:2312.00752",
       {{.name = "length", .help = "tokens of an example", .standard = 256, .min = 3},
        {.name = "symbols", .help = "different symbols", .standard = 16, .min = 2, .max = 1 << 20}},
       make<Induction>}};
}

}  // namespace quipu
