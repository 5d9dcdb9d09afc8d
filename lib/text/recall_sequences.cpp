#include "text/recall_sequences.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace quipu {
namespace {

constexpr std::int32_t kNoTarget = -1;

Index whole(const TaskValues& values, const char* name) { return static_cast<Index>(values.at(name)); }

/// A task over `count` symbols of an alphabet.
class SymbolTask : public RecallTask {
 public:
  explicit SymbolTask(Index count, Index symbols) : count_(count), symbols_(symbols) {}

  Index vocab() const final { return kFirstSymbol + symbols_; }
  std::string symbol(std::int32_t token) const final { return fmt::format("{}", token - kFirstSymbol); }
  double chance() const override { return 1.0 / static_cast<double>(symbols_); }

 protected:
  std::int32_t any_symbol(Draw& draw) const { return static_cast<std::int32_t>(kFirstSymbol + draw.below(symbols_)); }

  const Index count_, symbols_;
};

/// Symbols, a mark, and an answer that is read as it is given: x1 .. xn | a1 a2 .. a(m-1), with a1 asked for at the
/// mark.
class AnswerTask : public SymbolTask {
 public:
  AnswerTask(Index count, Index symbols, Index answers) : SymbolTask(count, symbols), answers_(answers) {}

  Index length() const final { return count_ + answers_; }

  void draw(Draw& draw, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const final {
    const auto count = static_cast<std::size_t>(count_);
    draw_symbols(draw, inputs.first(count));
    const std::vector<std::int32_t> answer = answer_of(inputs.first(count));
    inputs[count] = kMarkToken;
    std::copy(answer.begin(), answer.end() - 1, inputs.begin() + count_ + 1);
    std::ranges::fill(targets, kNoTarget);
    std::ranges::copy(answer, targets.begin() + count_);
  }

  TaskFaults check(std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets) const final {
    TaskFaults faults;
    const auto mark = static_cast<Index>(std::ranges::find(inputs, kMarkToken) - inputs.begin());
    for (Index t = 0; t < static_cast<Index>(inputs.size()); ++t) {
      const std::int32_t target = targets[static_cast<std::size_t>(t)];
      if (t < mark) {
        faults.wrong += target == kNoTarget ? 0 : 1;
        continue;
      }
      const bool read_right =
          t == mark || inputs[static_cast<std::size_t>(t)] == targets[static_cast<std::size_t>(t - 1)];
      faults.wrong += read_right && is_right(inputs.first(static_cast<std::size_t>(mark)), t - mark, target) ? 0 : 1;
    }
    faults.wrong += static_cast<Index>(inputs.size()) - mark == answers_ ? 0 : 1;
    return faults;
  }

 protected:
  virtual void draw_symbols(Draw& draw, std::span<std::int32_t> out) const {
    for (std::int32_t& token : out) token = any_symbol(draw);
  }
  virtual std::vector<std::int32_t> answer_of(std::span<const std::int32_t> symbols) const = 0;
  /// Whether `answer` is the i-th token of the answer to `symbols`.
  virtual bool is_right(std::span<const std::int32_t> symbols, Index i, std::int32_t answer) const = 0;

  const Index answers_;
};

class Copy final : public AnswerTask {
 public:
  explicit Copy(const TaskValues& v)
      : AnswerTask(whole(v, "count"), whole(v, "symbols"), whole(v, "count") * whole(v, "copies")) {}

  Index source_of(std::span<const std::int32_t>, Index t) const override { return (t - count_) % count_; }

 protected:
  std::vector<std::int32_t> answer_of(std::span<const std::int32_t> symbols) const override {
    std::vector<std::int32_t> answer;
    while (static_cast<Index>(answer.size()) < answers_) answer.insert(answer.end(), symbols.begin(), symbols.end());
    return answer;
  }
  bool is_right(std::span<const std::int32_t> symbols, Index i, std::int32_t answer) const override {
    return answer == symbols[static_cast<std::size_t>(i) % symbols.size()];
  }
};

class Reverse final : public AnswerTask {
 public:
  explicit Reverse(const TaskValues& v) : AnswerTask(whole(v, "count"), whole(v, "symbols"), whole(v, "count")) {}

  Index source_of(std::span<const std::int32_t>, Index t) const override { return 2 * count_ - 1 - t; }

 protected:
  std::vector<std::int32_t> answer_of(std::span<const std::int32_t> symbols) const override {
    return {symbols.rbegin(), symbols.rend()};
  }
  bool is_right(std::span<const std::int32_t> symbols, Index i, std::int32_t answer) const override {
    return answer == symbols[symbols.size() - 1 - static_cast<std::size_t>(i)];
  }
};

/// All symbols are different.
class Sort final : public AnswerTask {
 public:
  explicit Sort(const TaskValues& v) : AnswerTask(whole(v, "count"), whole(v, "symbols"), whole(v, "count")) {
    if (count_ > symbols_)
      throw UsageError("--count {}: the numbers are all different, and there are {}; give more --symbols", count_,
                       symbols_);
  }

  /// The best guess is 0 at first, and the next larger number behind each: right n/S and n(n-1)/S times of n, for n
  /// different numbers out of S.
  double chance() const override { return static_cast<double>(count_) / static_cast<double>(symbols_); }
  Index source_of(std::span<const std::int32_t> inputs, Index t) const override {
    std::vector<std::int32_t> sorted(inputs.begin(), inputs.begin() + count_);
    std::ranges::sort(sorted);
    return std::ranges::find(inputs, sorted[static_cast<std::size_t>(t - count_)]) - inputs.begin();
  }

 protected:
  void draw_symbols(Draw& draw, std::span<std::int32_t> out) const override {
    draw.distinct(symbols_, kFirstSymbol, out);
  }
  std::vector<std::int32_t> answer_of(std::span<const std::int32_t> symbols) const override {
    std::vector<std::int32_t> answer(symbols.begin(), symbols.end());
    std::ranges::sort(answer);
    return answer;
  }
  bool is_right(std::span<const std::int32_t> symbols, Index i, std::int32_t answer) const override {
    const auto smaller = std::ranges::count_if(symbols, [&](std::int32_t other) { return other < answer; });
    return smaller == i && std::ranges::count(symbols, answer) == 1;
  }
};

/// Symbols scattered among blanks, then marks: at each, the next symbol is asked for.
class SelectiveCopy final : public SymbolTask {
 public:
  explicit SelectiveCopy(const TaskValues& v)
      : SymbolTask(whole(v, "count"), whole(v, "symbols")), length_(whole(v, "length")) {
    if (length_ < 2 * count_)
      throw UsageError("--length {}: {} symbols and as many answers take {} tokens; give more, or a smaller --count",
                       length_, count_, 2 * count_);
  }

  Index length() const override { return length_; }

  void draw(Draw& draw, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const override {
    std::vector<std::int32_t> places(static_cast<std::size_t>(count_));
    draw.distinct(length_ - count_, 0, places);
    std::ranges::sort(places);
    std::ranges::fill(inputs, kBlankToken);
    std::ranges::fill(targets, kNoTarget);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t answer = inputs.size() - places.size() + i;
      inputs[static_cast<std::size_t>(places[i])] = targets[answer] = any_symbol(draw);
      inputs[answer] = kMarkToken;
    }
  }
  TaskFaults check(std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets) const override {
    TaskFaults faults;
    Index marks = 0, symbols = 0;
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      symbols += inputs[t] >= kFirstSymbol ? 1 : 0;
      if (inputs[t] != kMarkToken) {
        faults.wrong += targets[t] == kNoTarget ? 0 : 1;
        continue;
      }
      const Index source = nth_symbol(inputs, marks++);
      faults.wrong += source < 0 || inputs[static_cast<std::size_t>(source)] != targets[t] ? 1 : 0;
    }
    faults.wrong += marks == count_ && symbols == count_ ? 0 : 1;
    return faults;
  }
  Index source_of(std::span<const std::int32_t> inputs, Index t) const override {
    return nth_symbol(inputs, t - (length_ - count_));
  }

 private:
  static Index nth_symbol(std::span<const std::int32_t> inputs, Index n) {
    for (std::size_t t = 0; t < inputs.size(); ++t)
      if (inputs[t] >= kFirstSymbol && n-- == 0) return static_cast<Index>(t);
    return -1;
  }
  Index length_;
};

/// Bits; their sum so far, modulo 2.
class Parity final : public SymbolTask {
 public:
  explicit Parity(const TaskValues& v) : SymbolTask(whole(v, "length"), 2), last_only_(whole(v, "score") == 1) {}

  Index length() const override { return count_; }
  double chance() const override { return 0.5; }

  void draw(Draw& draw, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const override {
    std::int32_t parity = 0;
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      inputs[t] = any_symbol(draw);
      parity ^= inputs[t] - kFirstSymbol;
      targets[t] = last_only_ && t + 1 < inputs.size() ? kNoTarget : kFirstSymbol + parity;
    }
  }
  TaskFaults check(std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets) const override {
    TaskFaults faults;
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      const bool scored = !last_only_ || t + 1 == inputs.size();
      const auto ones = std::ranges::count(inputs.first(t + 1), kFirstSymbol + 1);
      faults.wrong += targets[t] == (scored ? kFirstSymbol + static_cast<std::int32_t>(ones % 2) : kNoTarget) ? 0 : 1;
    }
    return faults;
  }
  Index source_of(std::span<const std::int32_t>, Index) const override { return 0; }

 private:
  bool last_only_;
};

template <typename Task>
std::unique_ptr<RecallTask> make(const TaskValues& values) {
  return std::make_unique<Task>(values);
}

TaskParameter count_of(Index standard, const char* what) {
  return {.name = "count", .help = what, .standard = static_cast<double>(standard), .max = 1 << 24};
}
TaskParameter symbols_of(Index standard) {
  return {.name = "symbols",
          .help = "different symbols",
          .standard = static_cast<double>(standard),
          .min = 2,
          .max = 1 << 20};
}

}  // namespace

std::vector<RecallTaskKind> sequence_task_kinds() {
  return {{"copy",
           "say a sequence again, twice",
           "arXiv:2207.06881",
           {count_of(24, "symbols to copy"),
            symbols_of(10),
            {.name = "copies", .help = "how often the sequence is said again", .standard = 2, .max = 1 << 20}},
           make<Copy>},
          {"reverse",
           "say a sequence backwards",
           "arXiv:2207.06881",
           {count_of(24, "symbols to say"), symbols_of(10)},
           make<Reverse>},
          {"selective-copy",
           "say the symbols again that stood among blanks",
           "arXiv:2312.00752",
           {{.name = "length", .help = "tokens of an example", .standard = 256, .min = 2, .max = 1 << 24},
            count_of(16, "symbols to copy"),
            symbols_of(16)},
           make<SelectiveCopy>},
          {"sort", "say different numbers in order", "", {count_of(16, "numbers to sort"), symbols_of(64)}, make<Sort>},
          {"parity",
           "whether the ones so far are an odd number: tracks a state of one bit",
           "arXiv:2207.02098",
           {{.name = "length", .help = "bits", .standard = 40, .max = 1 << 24},
            {.name = "score", .help = "which positions are scored", .standard = 0, .choices = {"all", "last"}}},
           make<Parity>}};
}

}  // namespace quipu
