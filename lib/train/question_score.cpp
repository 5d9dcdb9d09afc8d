#include "train/question_score.h"

#include <algorithm>

#include "base/error.h"
#include "text/answer_match.h"
#include "train/completer.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr std::size_t kBlockLines = 256;

/// A choice in its place: what stands before it, and what is compared.
struct PlacedChoices {
  std::string context;
  std::vector<std::string> continuations;
  std::vector<std::string> contexts;  // where each choice has one of its own
};

class QuestionRun {
 public:
  QuestionRun(const SequenceModel& model, const Tokenizer& tokenizer, const RecallLines& lines,
              const QuestionOptions& options)
      : model_(model), tokenizer_(tokenizer), lines_(lines), options_(options), scorer_(model, options.batch_tokens) {
    blanks_ = lines.kind == LineKind::choices && have_blanks(lines);
  }

  QuestionResult operator()() {
    for (std::size_t first = 0; first < lines_.lines.size(); first += kBlockLines) {
      const std::size_t last = std::min(lines_.lines.size(), first + kBlockLines);
      const std::span<const RecallLine> block = std::span(lines_.lines).subspan(first, last - first);
      if (lines_.kind == LineKind::choices) score_choices(block);
      if (lines_.kind == LineKind::answers) score_answers(block);
      if (lines_.kind == LineKind::last_word) score_words(block);
      result_.lines = static_cast<Index>(last);
      if (options_.on_progress) options_.on_progress(result_.lines);
    }
    if (lines_.kind == LineKind::choices) result_.chance /= static_cast<double>(result_.lines);
    return result_;
  }

 private:
  struct Scored {
    double nll_nats = 0;
    Index tokens = 0;
    bool all_right = true;
  };

  std::string where(const RecallLine& line) const { return fmt::format("{}: line {}", lines_.name, line.line); }

  /// Scores rows in batches of similar length; the first few of a file are compared, too.
  std::vector<Scored> score_rows(const std::vector<ScoredRow>& rows) {
    std::vector<Index> lengths;
    for (const ScoredRow& row : rows) lengths.push_back(row.length());
    std::vector<Scored> scored(rows.size());
    for (const auto& batch : batches_of(lengths, options_.batch_tokens)) {
      std::vector<ScoredRow> together;
      for (const std::size_t i : batch) together.push_back(rows[i]);
      for (const TokenOutcome& o : scorer_.score(together)) {
        Scored& own = scored[batch[static_cast<std::size_t>(o.row)]];
        own.nll_nats += o.nll_nats;
        own.tokens += 1;
        own.all_right = own.all_right && o.right();
      }
    }
    for (const Index length : lengths) result_.longest = std::max(result_.longest, length);
    compare(rows);
    return scored;
  }

  void compare(const std::vector<ScoredRow>& rows) {
    if (result_.lines > 0 || rows.empty() || options_.compare_examples == 0) return;  // only in the first block
    const auto all = static_cast<Index>(rows.size()), count = std::min(options_.compare_examples, all);
    std::vector<ScoredRow> sample;
    for (Index i = 0; i < count; ++i) sample.push_back(rows[static_cast<std::size_t>(i * all / count)]);
    result_.forms = scorer_.compare(sample, std::max<Index>(1, options_.compare_tokens / count));
    require_agreement(result_.forms, lines_.name);
  }

  /// "before _ behind" with each choice in the place of `_`: what stands behind it is compared.
  PlacedChoices place(const RecallLine& line) const {
    PlacedChoices placed;
    if (!blanks_) {
      placed.context = fill_template(options_.prompt, line);
      const bool parted = placed.context.empty() || placed.context.back() == ' ' || placed.context.back() == '\n';
      for (const std::string& choice : line.choices) placed.continuations.push_back((parted ? "" : " ") + choice);
      return placed;
    }
    const std::size_t at = line.question.find('_');
    for (const std::string& choice : line.choices) {
      placed.contexts.push_back(line.context + line.question.substr(0, at) + choice);
      placed.continuations.push_back(line.question.substr(at + 1));
    }
    return placed;
  }

  void score_choices(std::span<const RecallLine> block) {
    std::vector<ScoredRow> rows;
    std::vector<double> bytes;
    for (const RecallLine& line : block) {
      const PlacedChoices placed = place(line);
      bool truncated = false;
      const auto add = [&](const Continuations& all) {
        result_.joints += all.joints;
        for (const auto& tokens : all.tokens)
          rows.push_back(row_of(tokens, all.scored_from, options_.limit, where(line), truncated));
      };
      if (!blanks_) add(encode_continuations(tokenizer_, placed.context, placed.continuations));
      for (std::size_t i = 0; i < placed.continuations.size(); ++i) {
        if (blanks_) add(encode_continuations(tokenizer_, placed.contexts[i], {placed.continuations[i]}));
        bytes.push_back(static_cast<double>(placed.continuations[i].size()));
      }
      result_.truncated += truncated ? 1 : 0;
      result_.chance += 1.0 / static_cast<double>(line.choices.size());
    }
    const std::vector<Scored> scored = score_rows(rows);
    for (std::size_t at = 0; const RecallLine& line : block) {
      const auto best = [&](auto&& cost) {
        std::size_t least = 0;
        for (std::size_t i = 1; i < line.choices.size(); ++i)
          if (cost(at + i) < cost(at + least)) least = i;
        return static_cast<Index>(least) == line.label;
      };
      result_.choices.add(best([&](std::size_t i) { return scored[i].nll_nats; }));
      result_.choices_by_token.add(best([&](std::size_t i) {
        return scored[i].nll_nats / static_cast<double>(std::max<Index>(1, scored[i].tokens));
      }));
      result_.choices_by_byte.add(best([&](std::size_t i) { return scored[i].nll_nats / bytes[i]; }));
      at += line.choices.size();
    }
    sum(scored);
  }

  void sum(const std::vector<Scored>& scored) {
    for (const Scored& s : scored) result_.nll_sum_nats += s.nll_nats, result_.tokens += s.tokens;
  }

  void score_words(std::span<const RecallLine> block) {
    std::vector<ScoredRow> rows;
    for (const RecallLine& line : block) {
      const std::size_t at = line.text.find_last_of(" \t\n");
      const Continuations word = encode_continuations(tokenizer_, line.text.substr(0, at), {line.text.substr(at)});
      bool truncated = false;
      rows.push_back(row_of(word.tokens[0], word.scored_from, options_.limit, where(line), truncated));
      result_.joints += word.joints;
      result_.truncated += truncated ? 1 : 0;
    }
    const std::vector<Scored> scored = score_rows(rows);
    for (const Scored& s : scored) result_.words.add(s.all_right);
    sum(scored);
  }

  void score_answers(std::span<const RecallLine> block) {
    std::vector<std::vector<std::int32_t>> prompts;
    std::vector<Index> lengths;
    for (const RecallLine& line : block) {
      bool truncated = false;
      prompts.push_back(prompt_of(tokenizer_, fill_template(options_.prompt, line), options_.answer_tokens,
                                  options_.limit, where(line), truncated));
      lengths.push_back(static_cast<Index>(prompts.back().size()));
      result_.longest = std::max(result_.longest, lengths.back());
      result_.truncated += truncated ? 1 : 0;
      result_.supported.add(
          contains_answer(truncated ? tokenizer_.decode(prompts.back()) : line.context, line.answers, true));
    }
    const Completer completer(model_, options_.batch_tokens, tokenizer_.vocab_size());
    std::vector<ScoredRow> rows(block.size());
    std::vector<std::string> texts(block.size());
    for (const auto& batch : batches_of(lengths, options_.batch_tokens)) {
      std::vector<std::vector<std::int32_t>> together;
      for (const std::size_t i : batch) together.push_back(prompts[i]);
      const auto completions =
          completer.complete(together, options_.answer_tokens, [&](std::size_t, std::span<const std::int32_t> so_far) {
            return so_far.back() != tokenizer_.end_of_document().value_or(-1) &&
                   (options_.stop.empty() ||
                    body_of(tokenizer_.decode(so_far)).find(options_.stop) == std::string::npos);
          });
      for (std::size_t i = 0; i < batch.size(); ++i) {
        texts[batch[i]] = answer_text(completions[i]);
        rows[batch[i]] = completed_row(together[i], completions[i]);
      }
    }
    compare(rows);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::vector<std::string>& answers = block[i].answers;
      result_.contains.add(contains_answer(texts[i], answers, true));
      result_.contains_as_is.add(contains_answer(texts[i], answers, false));
      result_.exact.add(exact_match(texts[i], answers, true));
      result_.exact_as_is.add(exact_match(texts[i], answers, false));
      result_.f1_sum += answer_f1(texts[i], answers);
    }
  }

  /// A completion without the blanks before its first word, in which a stop text does not count.
  static std::string body_of(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    return begin == text.npos ? std::string() : text.substr(begin);
  }
  std::string answer_text(std::vector<std::int32_t> tokens) const {
    if (!tokens.empty() && tokens.back() == tokenizer_.end_of_document().value_or(-1)) tokens.pop_back();
    std::string text = body_of(tokenizer_.decode(tokens));
    return options_.stop.empty() ? text : text.substr(0, text.find(options_.stop));
  }

  /// What was completed, as a row whose targets are the completion.
  static ScoredRow completed_row(const std::vector<std::int32_t>& prompt, const std::vector<std::int32_t>& completion) {
    std::vector<std::int32_t> tokens = prompt;
    tokens.insert(tokens.end(), completion.begin(), completion.end());
    bool truncated = false;
    return row_of(tokens, static_cast<Index>(prompt.size()), {}, "", truncated);
  }

  const SequenceModel& model_;
  const Tokenizer& tokenizer_;
  const RecallLines& lines_;
  const QuestionOptions& options_;
  RowScorer scorer_;
  bool blanks_ = false;
  QuestionResult result_;
};

}  // namespace

QuestionResult score_questions(const SequenceModel& model, const Tokenizer& tokenizer, const RecallLines& lines,
                               const QuestionOptions& options) {
  if (tokenizer.vocab_size() > model.vocab())
    throw InputError("{}: the tokenizer has {} tokens, the model's vocabulary {}; give the model's own", lines.name,
                     tokenizer.vocab_size(), model.vocab());
  return QuestionRun(model, tokenizer, lines, options)();
}

}  // namespace quipu::inline QUIPU_REAL_NS
