#include "cli/recall_run.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/stopwatch.h"
#include "cli/progress.h"
#include "cli/recall_report.h"
#include "text/answer_match.h"
#include "text/text_reader.h"
#include "train/model_checkpoint.h"

namespace quipu {
namespace {

constexpr const char* kRunHelp =
    R"(Scores a model on a task: at each scored token, whether its likeliest token is the target, by the parallel form of
the model. Logits are computed where something is scored, and nowhere else. A few examples are read by the recurrent
form, too, token by token; where the two predict otherwise, and not by rounding alone, the run fails.

A task is a dataset that make wrote, or JSON lines, plain or gzip, of one of these kinds:

  {"question": .., "choices": [.., ..], "label": 0}       the likeliest choice behind the question; where every
                                                          question has one _, the choice stands there, and what follows
                                                          it is compared
  {"context": .., "question": .., "answers": [.., ..]}    the likeliest completion contains an answer, or is one
  {"text": ..}                                            the last word of a text

Choices are compared by the likelihood of their tokens, as it is, per token and per byte of the choice. A token that
spans the joint of question and choice is scored with the choice, and then the same end of the question for every choice.
Completions are compared with blanks squeezed and without regard to upper and lower case (exact match and F1 as for
SQuAD), and as they stand.

The accuracy is that of scored tokens, or, of a task whose answer is several tokens of text, that of whole examples; its
interval is Wilson's at 95 %, for n independent ones. Chance is the best guess that knows the task but not the example.)";

/// `\\n` and `\\t` as the characters they stand for.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'n' || text[i + 1] == 't');
    out += !escape ? text[i] : text[++i] == 'n' ? '\n' : '\t';
  }
  return out;
}

class Run {
 public:
  Run(const RecallRunOptions& o, const Common& common) : o_(o), common_(common), file_(o.model) {}

  Status operator()() {
    watch_ = {};
    model_ = load_model(file_);
    subject_.model = file_.name();
    subject_.mixer =
        fmt::format("{} layers of {}, width {}", model_->config().layers, model_->config().mixer, model_->config().dim);
    subject_.parameters = model_->parameters().count();
    InputFile input(o_.task);
    subject_.task.seed = common_.seed;
    const bool is_dataset = input.is_hdf5();
    return is_dataset ? run_dataset(Dataset(std::move(input)))
                      : run_questions(TextReader(std::make_shared<InputFile>(std::move(input))));
  }

 private:
  void finish(Index longest) {
    subject_.state_bytes = model_->state_bytes(longest);
    subject_.wall_s = watch_.seconds();
  }

  Status run_dataset(const Dataset& data) {
    const RecallResult result = score(data);
    finish(result.longest);
    common_.json ? print_json(recall_report_json(subject_, result)) : print_text(recall_report_text(subject_, result));
    return gate(accuracy_of(subject_, result));
  }

  Status run_questions(TextReader&& reader) {
    RecallLines lines = read_recall_lines(reader);
    if (o_.max_examples > 0 && std::cmp_less(o_.max_examples, lines.lines.size()))
      lines.lines.resize(static_cast<std::size_t>(o_.max_examples));
    const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(file_.facts().tokenizer);
    warn_of_losses(*tokenizer, lines);
    const bool choices = lines.kind == LineKind::choices, blanks = choices && have_blanks(lines);
    subject_.data = lines.name;
    subject_.digest = lines.digest;
    subject_.task.name = choices ? "multiple choice" : lines.kind == LineKind::answers ? "answers" : "last word";
    Progress progress("recall-bench", "lines", static_cast<double>(lines.lines.size()));
    const QuestionOptions options{
        .prompt = lines.kind == LineKind::last_word || blanks ? std::string() : prompt_of(lines),
        .limit = {longest_input(*model_), o_.max_tokens},
        .batch_tokens = o_.batch_tokens,
        .answer_tokens = o_.answer_tokens,
        .stop = unescaped(o_.stop),
        .compare_examples = o_.compare_examples,
        .compare_tokens = o_.compare_tokens,
        .on_progress = [&](Index done) { progress.update(static_cast<double>(done)); }};
    const QuestionResult result = score_questions(*model_, *tokenizer, lines, options);
    progress.finish();
    finish(result.longest);
    common_.json ? print_json(question_report_json(subject_, lines.kind, options.prompt, result))
                 : print_text(question_report_text(subject_, lines.kind, options.prompt, result));
    return gate(result.accuracy(lines.kind));
  }

  /// Looks at the first lines for what the model's tokenizer cannot write.
  void warn_of_losses(const Tokenizer& tokenizer, const RecallLines& lines) const {
    constexpr std::size_t kLines = 64;
    const std::size_t looked_at = std::min(kLines, lines.lines.size());
    const auto lost = std::ranges::count_if(
        lines.lines.begin(), lines.lines.begin() + static_cast<std::ptrdiff_t>(looked_at),
        [&](const RecallLine& line) { return !comes_back(tokenizer, line.question + line.text); });
    if (lost > 0)
      log_warning(
          "{}: its tokenizer, {}, cannot write {} of the first {} lines as they stand; what it reads is not what they "
          "ask",
          subject_.model, describe(tokenizer), lost, looked_at);
  }

  std::string prompt_of(const RecallLines& lines) const {
    if (o_.prompt) return unescaped(*o_.prompt);
    const bool context = std::ranges::any_of(lines.lines, [](const RecallLine& line) { return !line.context.empty(); });
    return std::string(context ? "{context}\n" : "") + "Question: {question}\nAnswer:";
  }

  RecallResult score(const Dataset& data) {
    subject_.data = data.name();
    subject_.split = o_.split;
    subject_.digest = data.digest();
    const std::optional<TaskFacts> facts = read_task_facts(data);
    if (!facts) throw InputError("{}: holds a text, not a task; score it with eval-ppl", data.name());
    subject_.task = *facts;
    if (data.vocab() > model_->vocab())
      throw InputError(
          "{}: its task has a vocabulary of {} tokens, the model {} of {}; train a model on it, or make it "
          "with a smaller vocabulary",
          data.name(), data.vocab(), subject_.model, model_->vocab());
    if (data.tokenizer() != file_.facts().tokenizer)
      log_warning("{}: its tokens are not those of {}: the same numbers stand for something else", data.name(),
                  subject_.model);
    const Split& split = data.split(o_.split);
    Progress progress("recall-bench", "examples", static_cast<double>(split.examples()));
    RecallOptions options{.batch = o_.batch,
                          .max_examples = o_.max_examples,
                          .chunk_tokens = o_.batch_tokens,
                          .compare_examples = o_.compare_examples,
                          .compare_tokens = o_.compare_tokens,
                          .longest = longest_input(*model_),
                          .distance = distance_of(*facts, split),
                          .on_progress = [&](Index done) { progress.update(static_cast<double>(done)); }};
    return score_recall(*model_, split, options, data.name());
  }

  /// How far back answers stand.
  std::function<Index(std::span<const std::int32_t>, Index, Index)> distance_of(const TaskFacts& facts,
                                                                                const Split& split) {
    if (auto sources = split.read_sources(); !sources.empty())
      return [sources = std::move(sources)](std::span<const std::int32_t>, Index example, Index position) {
        const Index source = sources[static_cast<std::size_t>(example)];
        return source < 0 || source > position ? Index{0} : position - source;
      };
    for (const RecallTaskKind& kind : recall_task_kinds()) {
      if (kind.name != facts.name || kind.make == nullptr) continue;
      task_ = kind.make(complete_values(kind, parse_values(kind, facts.parameters)));
      return [this](std::span<const std::int32_t> inputs, Index, Index position) {
        const Index source = task_->source_of(inputs, position);
        return source < 0 ? Index{0} : position - source;
      };
    }
    return {};
  }

  Status gate(const Share& accuracy) const {
    if (!o_.min_accuracy || accuracy.value() >= *o_.min_accuracy) return Status::kDone;
    log_warning("accuracy {:.6g} is below --min-accuracy {:.6g}", accuracy.value(), *o_.min_accuracy);
    return Status::kGateMissed;
  }

  const RecallRunOptions& o_;
  const Common& common_;
  CheckpointFile file_;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<RecallTask> task_;
  RecallSubject subject_;
  Stopwatch watch_;
};

}  // namespace

void add_recall_run(Command& tool, RecallRunOptions& o) {
  Command& run = tool.command("run", "score a model on a task", kRunHelp);
  const Section main = run.section();
  add_argument(main, "MODEL.h5", o.model, true, "checkpoint that train wrote; - for standard input");
  add_argument(main, "TASK", o.task, true, "task that make wrote, or JSON lines; - for standard input");
  add_text(main, "--split", o.split, "NAME", "split of the task");
  add_count(main, "--batch", o.batch, 0, 1 << 20, "examples side by side; 0: what fits --batch-tokens");
  add_count(main, "--batch-tokens", o.batch_tokens, 1, Index{1} << 24, "tokens that the model reads at a time");
  add_count(main, "--max-examples", o.max_examples, 0, kMaxCount, "score the first so many; 0: all");
  add_count(main, "--compare", o.compare_examples, 0, kMaxCount, "examples for the recurrent form");
  add_count(main, "--compare-tokens", o.compare_tokens, 1, kMaxCount,
            "steps of the recurrent form; longer examples are stepped through at their end alone");
  const Section lines = run.section("JSON lines");
  add_text(
      lines, "--template", o.prompt, "TEXT",
      "what stands before a choice or an answer; {context} and {question} are replaced, \\n is a new line (default: "
      "the context, then \"Question: {question}\\nAnswer:\")");
  add_count(lines, "--max-tokens", o.max_tokens, 0, kMaxCount,
            "cut longer texts to this many tokens, at their beginning; 0: never");
  add_count(lines, "--answer-tokens", o.answer_tokens, 1, 1 << 20, "longest completion");
  add_text(lines, "--stop", o.stop, "TEXT", "text that ends a completion; empty: none");
  add_real(main, "--min-accuracy", o.min_accuracy, between(0, 1), "end with status 3 where the accuracy is below this");
  run.runs([&](const Common& common) {
    if (o.model == "-" && o.task == "-")
      throw UsageError("-: can be the model or the task, not both; give one of them as a file");
    return Run(o, common)();
  });
}

}  // namespace quipu
