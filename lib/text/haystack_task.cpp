#include "text/haystack_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "text/answer_match.h"

namespace quipu {
namespace {

constexpr std::int32_t kNoTarget = -1;

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

/// The tokens of a text, seen as a ring, and where sentences end in it.
class Filler {
 public:
  Filler(const Tokenizer& tokenizer, const std::string& text) : tokens_(tokenizer.encode(text)) {
    ends_.reserve(tokens_.size());
    bool after_stop = false;
    for (const std::int32_t token : tokens_) {
      const std::string_view bytes = tokenizer.token_bytes(token);
      const std::size_t last = bytes.find_last_not_of(" \"')\r");
      // A sentence ends with the token that closes it; where blanks are tokens of their own, behind these.
      after_stop =
          last == bytes.npos ? after_stop : std::string_view(".!?\n").find(bytes[last]) != std::string_view::npos;
      ends_.push_back(after_stop);
    }
    if (tokens_.empty()) throw UsageError("--text: there is no text to hide something in; give one");
  }

  Index size() const { return static_cast<Index>(tokens_.size()); }
  std::int32_t at(Index i) const { return tokens_[static_cast<std::size_t>(i % size())]; }
  /// The last end of a sentence at most `reach` tokens before place i (i itself where there is none).
  Index sentence_end(Index i, Index reach) const {
    for (Index back = 0; back < std::min(reach, i); ++back)
      if (ends_[static_cast<std::size_t>((i - back - 1) % size())]) return i - back;
    return i;
  }

 private:
  std::vector<std::int32_t> tokens_;
  std::vector<bool> ends_;
};

/// Where in a decoded text each token begins.
std::pair<std::string, std::vector<std::size_t>> decode_with_places(const Tokenizer& tokenizer,
                                                                    std::span<const std::int32_t> tokens) {
  std::string text;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    places.push_back(text.size());
    tokenizer.append_text(i == 0 ? -1 : tokens[i - 1], tokens[i], text);
  }
  return {std::move(text), std::move(places)};
}

/// Pieces of text hidden in a stretch of another, and a question behind.
class HaystackTask : public RecallTask {
 public:
  HaystackTask(const TaskValues& v, HaystackInputs inputs)
      : inputs_(std::move(inputs)),
        length_(static_cast<Index>(v.at("length"))),
        filler_(*inputs_.tokenizer, inputs_.filler) {}

  Index vocab() const override { return inputs_.tokenizer->vocab_size(); }
  Index length() const override { return length_; }
  std::string symbol(std::int32_t token) const override { return std::string(inputs_.tokenizer->token_bytes(token)); }
  TokenizerData tokenizer() const override { return inputs_.tokenizer->serialize(); }
  bool whole_examples() const override { return true; }
  void draw(Draw& source, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const override {
    draw_identified(source, inputs, targets);
  }

 protected:
  /// The question's tokens with the answer's, which are scored from `scored_from` on.
  struct Tail {
    std::vector<std::int32_t> tokens;
    std::size_t scored_from = 0;
  };
  Tail tail_of(const std::string& question, const std::string& answer) const {
    Tail tail;
    const std::vector<std::int32_t> alone = inputs_.tokenizer->encode(question);
    tail.tokens = inputs_.tokenizer->encode(question + answer);
    tail.scored_from = static_cast<std::size_t>(
        std::mismatch(alone.begin(), alone.end(), tail.tokens.begin(), tail.tokens.end()).first - alone.begin());
    return tail;
  }

  /// Tokens of filler that an example has room for beside `hidden` tokens and the tail, whose last is not read.
  Index room(Index hidden, const Tail& tail) const {
    return length_ - hidden - static_cast<Index>(tail.tokens.size()) + 1;
  }

  /// Writes filler from `start` on with pieces in it: piece i stands behind place[i] tokens of filler (ascending).
  void write(Index start, const std::vector<std::vector<std::int32_t>>& pieces, const std::vector<Index>& places,
             const Tail& tail, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const {
    std::ranges::fill(targets, kNoTarget);
    const auto end = static_cast<Index>(inputs.size() - (tail.tokens.size() - 1));
    Index at = 0, used = 0;
    const auto fill_to = [&](Index count) {
      while (used < count && at < end) inputs[static_cast<std::size_t>(at++)] = filler_.at(start + used++);
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      fill_to(places[i]);
      for (const std::int32_t token : pieces[i]) inputs[static_cast<std::size_t>(at++)] = token;
    }
    fill_to(length_);
    for (std::size_t i = 0; i + 1 < tail.tokens.size(); ++i) inputs[static_cast<std::size_t>(at++)] = tail.tokens[i];
    for (std::size_t i = tail.scored_from; i < tail.tokens.size(); ++i)
      targets[inputs.size() - tail.tokens.size() + i] = tail.tokens[i];
  }

  /// The scored tokens as text.
  std::string said(std::span<const std::int32_t> targets) const {
    std::vector<std::int32_t> tokens;
    std::ranges::copy_if(targets, std::back_inserter(tokens), [](std::int32_t t) { return t != kNoTarget; });
    return inputs_.tokenizer->decode(tokens);
  }

  HaystackInputs inputs_;
  Index length_;
  Filler filler_;
};

/// One needle, with a number in it or not.
class NeedleTask final : public HaystackTask {
 public:
  NeedleTask(const TaskValues& v, HaystackInputs inputs)
      : HaystackTask(v, std::move(inputs)),
        depth_(v.contains("depth") ? v.at("depth") : -1),
        digits_(static_cast<int>(v.at("digits"))) {
    if (has_number() && inputs_.needle.find("{k}") == std::string::npos)
      throw UsageError("--needle '{}': has no {{k}}, which the answer '{}' asks for; write it where the number stands",
                       inputs_.needle, inputs_.answer);
    const std::string hint = squeeze_blanks(has_number() ? before_number() : needle(""));
    if (hint.empty()) throw UsageError("--needle '{}': begins with its number; put words before it", inputs_.needle);
    if (squeeze_blanks(inputs_.filler).find(hint) != std::string::npos)
      throw UsageError("--text: has '{}' in it, the needle's own words; give another text or --needle", hint);
    const std::string longest(static_cast<std::size_t>(digits_), '8');
    const Tokenizer& tokenizer = *inputs_.tokenizer;
    if (!comes_back(tokenizer, needle(longest)))
      throw UsageError("--tokenizer: {} cannot write the needle '{}'; give a lossless one, such as bytes",
                       describe(tokenizer), inputs_.needle);
    const Tail tail = tail_of(question(longest), answer(longest));
    const auto hidden = static_cast<Index>(inputs_.tokenizer->encode(needle(longest)).size());
    if (room(hidden, tail) < 1)
      throw UsageError("--length {}: needle, question and answer take {} tokens; give more", length_,
                       hidden + static_cast<Index>(tail.tokens.size()));
  }

  double chance() const override { return has_number() ? std::pow(10.0, -digits_) / 0.9 : 1; }

  Digest draw_identified(Draw& source, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const override {
    std::string number(1, static_cast<char>('1' + source.below(9)));
    for (int i = 1; i < digits_; ++i) number += static_cast<char>('0' + source.below(10));
    const std::vector<std::int32_t> hidden = inputs_.tokenizer->encode(needle(number));
    const Tail tail = tail_of(question(number), answer(number));
    const Index space = room(static_cast<Index>(hidden.size()), tail);
    const Index start = source.below(filler_.size());
    const double depth = depth_ < 0 ? source.uniform() : depth_;
    const auto wanted = static_cast<Index>(std::llround(depth * static_cast<double>(space)));
    const Index place = filler_.sentence_end(start + wanted, std::min<Index>(wanted, 256)) - start;
    write(start, {hidden}, {place}, tail, inputs, targets);
    return digest_of(std::as_bytes(inputs));
  }

  TaskFaults check(std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets) const override {
    TaskFaults faults;
    const auto scored = std::ranges::find_if(targets, [](std::int32_t t) { return t != kNoTarget; }) - targets.begin();
    std::string text = inputs_.tokenizer->decode(inputs.first(static_cast<std::size_t>(scored)));
    text.resize(text.size() - std::min(text.size(), question("").size()));  // the question begins like the needle
    const std::string answered = squeeze_blanks(said(targets));
    if (!has_number()) {
      const bool hidden = squeeze_blanks(text).find(squeeze_blanks(needle(""))) != std::string::npos;
      faults.wrong = hidden && answered.find(squeeze_blanks(answer(""))) != std::string::npos ? 0 : 1;
      return faults;
    }
    std::string found;
    for (std::size_t at = text.find(before_number()); at != text.npos; at = text.find(before_number(), at + 1)) {
      const std::size_t first = at + before_number().size();
      const std::string number = text.substr(first, text.find_first_not_of("0123456789", first) - first);
      faults.rebindings += !found.empty() && found != number ? 1 : 0;
      if (found.empty()) found = number;
    }
    faults.wrong = found.empty() || answered.find(found) == std::string::npos ? 1 : 0;
    return faults;
  }

  Index source_of(std::span<const std::int32_t> inputs, Index) const override {
    const auto [text, places] = decode_with_places(*inputs_.tokenizer, inputs);
    const std::string mark = has_number() ? before_number() : needle("");
    const std::size_t at = text.find(mark);
    if (at == text.npos) return -1;
    return std::ranges::upper_bound(places, at + (has_number() ? mark.size() : 0)) - places.begin() - 1;
  }

 private:
  bool has_number() const { return inputs_.answer.find("{k}") != std::string::npos; }
  std::string needle(const std::string& k) const { return "\n" + replaced(inputs_.needle, "{k}", k) + "\n"; }
  std::string question(const std::string& k) const { return "\n" + replaced(inputs_.question, "{k}", k); }
  std::string answer(const std::string& k) const { return " " + replaced(inputs_.answer, "{k}", k); }
  std::string before_number() const { return inputs_.needle.substr(0, inputs_.needle.find("{k}")); }

  double depth_;  // below 0: anywhere
  int digits_;
};

/// A story of bAbI, its facts scattered.
class BabilongTask final : public HaystackTask {
 public:
  BabilongTask(const TaskValues& v, HaystackInputs inputs) : HaystackTask(v, std::move(inputs)) {
    std::size_t shortest = static_cast<std::size_t>(-1);
    for (const BabiQuestion& story : inputs_.stories) {
      for (const std::string& fact : story.facts) facts_.emplace(fact, 0);
      Told told{&story, {}, tail_of("\nQuestion: " + story.question + "\nAnswer:", " " + story.answer)};
      std::size_t needed = told.tail.tokens.size();
      for (const std::string& fact : story.facts) {
        told.pieces.push_back(inputs_.tokenizer->encode(" " + fact + " "));
        needed += told.pieces.back().size();
      }
      shortest = std::min(shortest, needed);
      answers_.emplace(story.key(), story.answer);
      if (needed <= static_cast<std::size_t>(length_)) told_.push_back(std::move(told));
    }
    if (told_.empty())
      throw UsageError("--length {}: the shortest story takes {} tokens; give more", length_,
                       inputs_.stories.empty() ? 0 : shortest);
  }

  /// The most frequent answer.
  double chance() const override {
    std::map<std::string, double> counts;
    double most = 0;
    for (const Told& told : told_) most = std::max(most, ++counts[told.story->answer]);
    return most / static_cast<double>(told_.size());
  }

  Digest draw_identified(Draw& source, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const override {
    const Told& told = told_[static_cast<std::size_t>(source.below(static_cast<Index>(told_.size())))];
    Index hidden = 0;
    for (const auto& piece : told.pieces) hidden += static_cast<Index>(piece.size());
    const Index start = source.below(filler_.size()), space = room(hidden, told.tail);
    std::vector<Index> places;
    for (std::size_t i = 0; i < told.pieces.size(); ++i) {
      const Index wanted = source.below(space + 1);
      places.push_back(filler_.sentence_end(start + wanted, std::min<Index>(wanted, 256)) - start);
    }
    std::ranges::sort(places);
    write(start, told.pieces, places, told.tail, inputs, targets);
    if (!inputs_.split_stories) return digest_of(std::as_bytes(inputs));
    const std::string key = told.story->key();
    return digest_of(std::as_bytes(std::span(key)));
  }

  TaskFaults check(std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets) const override {
    const std::string text = " " + inputs_.tokenizer->decode(inputs);
    const std::size_t asked = text.rfind("\nQuestion: "), end = text.rfind("\nAnswer:");
    if (asked == text.npos || end == text.npos || end < asked) return {.wrong = 1};
    std::vector<std::pair<std::size_t, const std::string*>> found;
    for (const auto& [fact, unused] : facts_)
      for (std::size_t at = text.find(" " + fact + " "); at < asked; at = text.find(" " + fact + " ", at + 1))
        found.emplace_back(at, &fact);
    std::ranges::sort(found);
    BabiQuestion story;
    for (const auto& [at, fact] : found) story.facts.push_back(*fact);
    story.question = text.substr(asked + 11, end - asked - 11);
    const auto known = answers_.find(story.key());
    return {.wrong = known == answers_.end() || squeeze_blanks(said(targets)) != known->second ? 1 : 0};
  }

  Index source_of(std::span<const std::int32_t>, Index) const override { return -1; }
  Index left_out() const override { return static_cast<Index>(inputs_.stories.size() - told_.size()); }

 private:
  struct Told {
    const BabiQuestion* story;
    std::vector<std::vector<std::int32_t>> pieces;
    Tail tail;
  };
  std::vector<Told> told_;  // those that fit
  std::map<std::string, int> facts_;
  std::map<std::string, std::string> answers_;
};

}  // namespace

const std::vector<RecallTaskKind>& haystack_task_kinds() {
  const TaskParameter length{
      .name = "length", .help = "tokens of an example", .standard = 1024, .min = 8, .max = 1 << 26};
  const TaskParameter depth{.name = "depth",
                            .help = "where the needle stands: 0 at the beginning, 1 at the end",
                            .standard = {},
                            .standard_text = "anywhere",
                            .min = 0,
                            .max = 1,
                            .whole = false};
  const TaskParameter digits{.name = "digits", .help = "digits of the number", .standard = 5, .max = 18};
  static const std::vector<RecallTaskKind> kinds = {
      {"passkey",
       "a pass key hidden in a text (default: in sentences said over and over)",
       "arXiv:2305.16300",
       {length, depth, digits},
       nullptr},
      {"needle", "a sentence hidden in a text (--text)", "", {length, depth, digits}, nullptr},
      {"babilong", "facts of bAbI (--babi) scattered through a text (--text)", "arXiv:2402.10790", {length}, nullptr}};
  return kinds;
}

HaystackInputs standard_inputs(const std::string& kind) {
  HaystackInputs inputs;
  if (kind == "passkey") {
    inputs.filler = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again. ";
    inputs.needle = "The pass key is {k}. Remember it. {k} is the pass key.";
    inputs.question = "What is the pass key? The pass key is";
    inputs.answer = "{k}";
  }
  if (kind == "needle") {
    inputs.needle = "The number of the locker is {k}.";
    inputs.question = "What is the number of the locker? The number of the locker is";
    inputs.answer = "{k}";
  }
  return inputs;
}

std::unique_ptr<RecallTask> make_haystack_task(const std::string& kind, const TaskValues& values,
                                               const HaystackInputs& inputs) {
  if (kind == "babilong") return std::make_unique<BabilongTask>(values, inputs);
  return std::make_unique<NeedleTask>(values, inputs);
}

}  // namespace quipu
