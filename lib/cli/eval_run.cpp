#include "cli/eval_run.h"

#include <algorithm>

#include "base/log.h"
#include "base/output.h"
#include "base/stopwatch.h"
#include "cli/eval_report.h"
#include "cli/progress.h"
#include "text/text_reader.h"
#include "train/model_checkpoint.h"

namespace quipu {
namespace {

class Run {
 public:
  Run(const EvalRequest& o, const Common& common);
  Status operator()();

 private:
  Protocol protocol() const;
  EvalResult evaluate_dataset(const Dataset& data);
  EvalResult evaluate_text(std::shared_ptr<InputFile> input);
  void report(const EvalResult& result) const;
  bool by_position() const { return o_.by_position || plot_.has_value(); }

  const EvalRequest& o_;
  const Common& common_;
  std::optional<PlotFile> plot_;
  TokenizerData tokenizer_data_;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  EvalOptions options_;
  EvalSubject subject_;
  PositionBins bins_;
};

Run::Run(const EvalRequest& o, const Common& common)
    : o_(o), common_(common), plot_(o.plot ? std::make_optional<PlotFile>(*o.plot) : std::nullopt) {
  {
    const CheckpointFile file(o.model);
    model_ = load_model(file, false, o.set);
    tokenizer_data_ = file.facts().tokenizer;
    subject_.model = file.name();
  }  // gives its memory back before the work begins
  tokenizer_ = make_tokenizer(tokenizer_data_);
  subject_.data = shown_path(o.data, "stdin");
  subject_.prefix = o.prefix;
  subject_.protocol = options_.protocol = protocol();
  options_.prefix = tokenizer_->encode(o.prefix);
  options_.tokenizer = tokenizer_.get();
  options_.batch_tokens = o.batch_tokens;
  if (by_position() || o.per_token)
    options_.on_token = [this](const TokenScore& score) {
      if (by_position()) bins_.add(score.context, score.position, score.nll_nats);
      if (o_.per_token) print_text(token_line(score, *tokenizer_));
    };
}

Protocol Run::protocol() const {
  const ModelConfig& config = model_->config();
  const bool learned = config.positions == "learned" && model_->memory() == Memory::fixed_length;
  if (o_.protocol.empty()) return model_->memory() == Memory::fixed ? Protocol{} : block_protocol(config.length);
  const Protocol given = parse_protocol(o_.protocol);
  if (learned && given.window > config.length)
    throw UsageError("--protocol {}: the model has learned {} positions; give a window of at most {}, as in blocks:{}",
                     given.name, config.length, config.length, config.length);
  return given;
}

EvalResult Run::evaluate_dataset(const Dataset& data) {
  if (o_.per_line) throw UsageError("--per-line: reads a text, and {} is a dataset; give a text", data.name());
  if (data.tokenizer() != tokenizer_data_)
    throw InputError("{}: its tokenizer is {}, not the model's {}; convert its text with --tokenizer {}", data.name(),
                     describe(*make_tokenizer(data.tokenizer())), describe(*tokenizer_), o_.model);
  subject_.split = !o_.split.empty() ? o_.split : data.has_split("test") ? "test" : "valid";
  const Split& split = data.split(subject_.split);
  Progress progress("eval-ppl", "tokens", static_cast<double>(split.tokens()));
  options_.on_progress = [&](Index tokens) { progress.update(static_cast<double>(tokens)); };
  return evaluate(*model_, split, options_);
}

EvalResult Run::evaluate_text(std::shared_ptr<InputFile> input) {
  TextReader reader(std::move(input));
  if (!o_.per_line) {
    Progress progress("eval-ppl", "tokens", 0);
    options_.on_progress = [&](Index tokens) { progress.update(static_cast<double>(tokens)); };
    return quipu::evaluate_text(*model_, *tokenizer_, reader, parse_document_rule(o_.documents), options_);
  }
  LineScorer scorer(*model_, *tokenizer_, options_, [&](const LineScore& line) {
    common_.json ? print_json(line_json(line)) : print_text(line_line(line));
  });
  std::vector<char> block(1 << 16);
  while (const std::size_t got = reader.read(block)) {
    scorer.add({block.data(), got});
    flush_output();
  }
  return scorer.finish();
}

void Run::report(const EvalResult& result) const {
  const Stream stream = o_.per_token || o_.per_line ? Stream::kError : Stream::kOutput;
  if (stream == Stream::kError && common_.quiet) return;
  if (common_.json) {
    Json json = eval_report_json(subject_, result);
    if (by_position()) json["by_position"] = position_json(bins_);
    return print_json(json, stream);
  }
  print_text(eval_report_text(subject_, result), stream);
  if (!by_position()) return;
  print_text("\n", stream);
  print_table(position_table(bins_), stream);
}

Status Run::operator()() {
  const Stopwatch watch;
  auto input = std::make_shared<InputFile>(o_.data);
  const bool is_dataset = input->is_hdf5();
  if (!is_dataset && !o_.split.empty())
    throw UsageError("--split {}: {} is a text, which has no splits; leave it out", o_.split, input->name());
  const EvalResult result = is_dataset ? evaluate_dataset(Dataset(std::move(*input))) : evaluate_text(std::move(input));
  subject_.wall_s = watch.seconds();
  if (result.tokens == 0 && !o_.per_line)
    throw InputError(
        "{}: holds {} tokens, each the first of its document, and those have no context; give a longer "
        "text, or --prefix",
        subject_.data, result.unscored_tokens);
  if (plot_) plot_->write(position_plot(bins_));
  report(result);
  if (!o_.max_ppl || !(result.perplexity_per_token() > *o_.max_ppl)) return Status::kDone;
  log_warning("perplexity per token {:.6g} is above --max-ppl {:.6g}", result.perplexity_per_token(), *o_.max_ppl);
  return Status::kGateMissed;
}

}  // namespace

Status run_eval(const EvalRequest& request, const Common& common) {
  if (request.model == "-" && request.data == "-")
    throw UsageError("-: can be the model or the data, not both; give one of them as a file");
  return Run(request, common)();
}

}  // namespace quipu
