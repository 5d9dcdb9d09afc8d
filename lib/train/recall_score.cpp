#include "train/recall_score.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace quipu {
namespace {

ScoredRow read_row(const Split& split, Index example) {
  ScoredRow row;
  row.inputs.resize(static_cast<std::size_t>(split.length()));
  row.targets.resize(row.inputs.size());
  split.read_examples(example, row.inputs, row.targets);
  return row;
}

void check(const Split& split, Index vocab, const std::string& name) {
  if (!split.is_scored())
    throw InputError("{}: split '{}' is a text, not a task; score it with eval-ppl", name, split.name());
  if (split.examples() == 0) throw InputError("{}: split '{}' holds no example", name, split.name());
  if (vocab < 1) throw InternalError("a model without vocabulary");
}

}  // namespace

double Share::bound(int side) const {
  if (n == 0) return side < 0 ? 0 : 1;
  constexpr double z = 1.959963984540054;
  const auto count = static_cast<double>(n);
  const double p = value(), middle = p + z * z / (2 * count);
  const double spread = z * std::sqrt(p * (1 - p) / count + z * z / (4 * count * count));
  return std::clamp((middle + side * spread) / (1 + z * z / count), 0.0, 1.0);
}

void require_agreement(const FormComparison& forms, const std::string& name) {
  if (forms.disagreeing == 0) return;
  throw InternalError(
      "{}: the recurrent form predicts otherwise than the parallel one at {} of {} tokens; their logits differ by "
      "{:.2g} of the largest, and rounding explains {:.2g}",
      name, forms.disagreeing, forms.tokens, forms.logit_difference, FormComparison::kRounding);
}

inline namespace QUIPU_REAL_NS {
namespace {

class RecallRun {
 public:
  RecallRun(const SequenceModel& model, const Split& split, const RecallOptions& options, std::string name)
      : model_(model), split_(split), options_(options), name_(std::move(name)), scorer_(model, options.chunk_tokens) {}

  RecallResult operator()() {
    const Index all = split_.examples();
    const Index examples = options_.max_examples > 0 ? std::min(all, options_.max_examples) : all;
    Index batch = options_.batch;
    if (batch == 0) batch = std::clamp<Index>(options_.chunk_tokens / split_.length(), 1, 512);
    for (Index first = 0; first < examples; first += batch) score(first, std::min(batch, examples - first));
    if (result_.tokens.n == 0)
      throw InputError("{}: split '{}' has {} examples, and nothing in them is scored", name_, split_.name(), examples);
    compare(examples);
    return result_;
  }

 private:
  ScoredRow checked_row(Index example) const {
    ScoredRow row = read_row(split_, example);
    const Index length = row.length();
    if (options_.longest > 0 && length > options_.longest)
      throw InputError(
          "{}: example {} of split '{}' has {} tokens, and the model can read {}; make shorter ones, or "
          "train with a larger --seq-len",
          name_, example, split_.name(), length, options_.longest);
    for (Index t = 0; t < length; ++t)
      for (const std::int32_t token :
           {row.inputs[static_cast<std::size_t>(t)], row.targets[static_cast<std::size_t>(t)]})
        if (token >= model_.vocab())
          throw InputError("{}: example {} has token {}, and the model's vocabulary has {}; use a model of the task's",
                           name_, example, token, model_.vocab());
    return row;
  }

  void score(Index first, Index count) {
    std::vector<ScoredRow> rows;
    for (Index i = 0; i < count; ++i) {
      rows.push_back(checked_row(first + i));
      result_.longest = std::max(result_.longest, rows.back().length());
    }
    std::vector<char> all_right(rows.size(), 1), scored(rows.size(), 0);
    for (const TokenOutcome& o : scorer_.score(rows)) {
      const auto row = static_cast<std::size_t>(o.row);
      scored[row] = 1;
      if (!o.right()) all_right[row] = 0;
      result_.tokens.add(o.right());
      result_.nll_sum_nats += o.nll_nats;
      if (!options_.distance) continue;
      const Index distance = options_.distance(rows[row].inputs, first + o.row, o.position);
      if (distance > 0)
        result_.by_distance[static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(distance)))].add(o.right());
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (scored[i]) result_.examples.add(all_right[i] != 0);
    if (options_.on_progress) options_.on_progress(first + count);
  }

  void compare(Index examples) {
    const Index count = std::min(options_.compare_examples, examples);
    if (count == 0) return;
    std::vector<ScoredRow> rows;
    for (Index i = 0; i < count; ++i) rows.push_back(checked_row(i * examples / count));
    result_.forms = scorer_.compare(rows, std::max<Index>(1, options_.compare_tokens / count));
    require_agreement(result_.forms, name_);
  }

  const SequenceModel& model_;
  const Split& split_;
  const RecallOptions& options_;
  std::string name_;
  RowScorer scorer_;
  RecallResult result_;
};

}  // namespace

RecallResult score_recall(const SequenceModel& model, const Split& split, const RecallOptions& options,
                          const std::string& name) {
  check(split, model.vocab(), name);
  return RecallRun(model, split, options, name)();
}

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
