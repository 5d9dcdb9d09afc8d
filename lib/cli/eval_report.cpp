#include "cli/eval_report.h"

#include "text/escape.h"

namespace quipu {
namespace {

std::string figure(double value, int digits = 6) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "-";
}

std::string prefix_text(const EvalSubject& subject, const EvalResult& result) {
  if (!subject.prefix.empty()) return fmt::format("\"{}\" before each document", escape_text(subject.prefix));
  return fmt::format("none (the first token of each document is not scored: {})", grouped(result.unscored_tokens));
}

}  // namespace

std::string eval_report_text(const EvalSubject& subject, const EvalResult& result) {
  Table table({"", ""});
  table.row({"data", subject.split.empty() ? subject.data : subject.data + ", split " + subject.split});
  table.row({"protocol", subject.protocol.name});
  table.row({"context", subject.protocol.context()});
  table.row({"prefix", prefix_text(subject, result)});
  table.row({"documents", grouped(result.documents)});
  table.row({"tokens", grouped(result.tokens)});
  table.row({"words", grouped(static_cast<Index>(result.words))});
  table.row({"bytes", grouped(static_cast<Index>(result.bytes))});
  table.row({"nll, nats", figure(result.nll_sum_nats, 9)});
  table.row({"nats per token", figure(result.nats_per_token())});
  table.row({"perplexity per token", figure(result.perplexity_per_token())});
  table.row({"perplexity per word", figure(result.perplexity_per_word())});
  table.row({"bits per byte", figure(result.bits_per_byte())});
  table.row({"time", fmt::format("{}, {} tokens/s", human_duration(subject.wall_s),
                                 human_count(static_cast<double>(result.tokens) / std::max(1e-9, subject.wall_s)))});
  return table.text();
}

Json eval_report_json(const EvalSubject& subject, const EvalResult& result) {
  Json json = json_report("eval-ppl", 1);
  json["model"] = subject.model;
  json["data"] = subject.data;
  json["split"] = subject.split.empty() ? Json() : Json(subject.split);
  json["protocol"] = subject.protocol.name;
  json["context"] = subject.protocol.context();
  json["prefix"] = subject.prefix;
  json["documents"] = result.documents;
  json["tokens"] = result.tokens;
  json["words"] = result.words;
  json["bytes"] = result.bytes;
  json["unscored"] = result.unscored_tokens;
  json["unscored_words"] = result.unscored_words;
  json["unscored_bytes"] = result.unscored_bytes;
  json["nll_sum_nats"] = result.nll_sum_nats;
  json["nats_per_token"] = result.nats_per_token();
  json["perplexity_per_token"] = result.perplexity_per_token();
  json["perplexity_per_word"] = result.perplexity_per_word();
  json["bits_per_byte"] = result.bits_per_byte();
  json["wall_s"] = subject.wall_s;
  json["tokens_per_s"] = static_cast<double>(result.tokens) / std::max(1e-9, subject.wall_s);
  return json;
}

Table position_table(const PositionBins& bins) {
  Table table({"context from", "to", "tokens", "nats per token", "standard error", "perplexity"});
  for (const PositionBins::Bin& bin : bins.bins())
    table.row({fmt::to_string(bin.from), fmt::to_string(bin.to), fmt::to_string(bin.tokens),
               figure(bin.nats_per_token()), figure(bin.standard_error(), 2), figure(std::exp(bin.nats_per_token()))});
  return table;
}

Json position_json(const PositionBins& bins) {
  Json list = Json::array();
  for (const PositionBins::Bin& bin : bins.bins())
    list.push_back({{"context_from", bin.from},
                    {"context_to", bin.to},
                    {"tokens", bin.tokens},
                    {"context_mean", bin.mean_context()},
                    {"nats_per_token", bin.nats_per_token()},
                    {"standard_error_nats", bin.standard_error()},
                    {"perplexity", std::exp(bin.nats_per_token())}});
  return list;
}

Plot position_plot(const PositionBins& bins) {
  Plot plot{.x = {"context (tokens)", AxisScale::log2}, .y = {"loss (nats per token)"}, .series = {{}}};
  for (const PositionBins::Bin& bin : bins.bins())
    plot.series[0].points.push_back({bin.mean_context(), bin.nats_per_token(), bin.standard_error()});
  return plot;
}

std::string token_line(const TokenScore& score, const Tokenizer& tokenizer) {
  return fmt::format("{}\t{}\t{}\t{:.9g}\n", score.position, score.token,
                     escape_text(tokenizer.token_bytes(score.token)), score.nll_nats);
}

std::string line_line(const LineScore& line) {
  return fmt::format("{}\t{}\t{:.9g}\t{}\t{}\n", line.line, line.score.tokens, line.score.nll_nats,
                     figure(line.bits_per_byte()), figure(line.perplexity()));
}

Json line_json(const LineScore& line) {
  Json json = json_report("eval-ppl-line", 1);
  json["line"] = line.line;
  json["tokens"] = line.score.tokens;
  json["bytes"] = line.score.tokens > 0 ? line.bytes : 0;
  json["unscored"] = line.score.unscored_tokens;
  json["nll_nats"] = line.score.nll_nats;
  json["bits_per_byte"] = line.bits_per_byte();
  json["perplexity"] = line.perplexity();
  return json;
}

}  // namespace quipu
