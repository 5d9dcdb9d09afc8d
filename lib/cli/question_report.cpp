#include <algorithm>
#include <cmath>

#include "cli/recall_report.h"
#include "text/escape.h"

namespace quipu {
namespace {

double mean(double sum, Index n) { return sum / static_cast<double>(std::max<Index>(1, n)); }

void choice_rows(Table& table, const QuestionResult& r) {
  table.row({"accuracy", share_text(r.choices)});
  table.row({"by tokens", share_text(r.choices_by_token)});
  table.row({"by bytes", share_text(r.choices_by_byte)});
  table.row({"n", grouped(r.choices.n) + " questions"});
  table.row({"chance", fmt::format("{:.4f}", r.chance)});
  table.row({"ceiling", "1"});
  table.row({"spanned joints", grouped(r.joints) + " choices"});
}

void answer_rows(Table& table, const QuestionResult& r) {
  table.row({"accuracy", share_text(r.contains) + ": the completion contains an answer"});
  table.row({"  blanks as is", share_text(r.contains_as_is)});
  table.row({"exact match", share_text(r.exact)});
  table.row({"  as is", share_text(r.exact_as_is)});
  table.row({"F1", fmt::format("{:.4f}", mean(r.f1_sum, r.contains.n))});
  table.row({"n", grouped(r.contains.n) + " questions"});
  table.row({"chance", "0"});
  table.row({"ceiling", fmt::format("1; {:.4f} have an answer in what was read", r.supported.value())});
}

void word_rows(Table& table, const QuestionResult& r) {
  table.row({"accuracy", share_text(r.words)});
  table.row({"perplexity", fmt::format("{:.6g} a word, {:.6g} a token", std::exp(mean(r.nll_sum_nats, r.words.n)),
                                       std::exp(mean(r.nll_sum_nats, r.tokens)))});
  table.row({"n", grouped(r.words.n) + " words"});
  table.row({"chance", "0"});
  table.row({"ceiling", "1"});
  table.row({"spanned joints", grouped(r.joints) + " words"});
}

}  // namespace

std::string question_report_text(const RecallSubject& s, LineKind kind, const std::string& prompt,
                                 const QuestionResult& r) {
  Table table({"", ""});
  table.row({"task", s.task.name});
  table.row({"data", fmt::format("{}, digest {}, seed {}", s.data, s.digest, s.task.seed)});
  table.row({"model", fmt::format("{}, {}, {} parameters", s.model, s.mixer, grouped(s.parameters))});
  table.row({"state", fmt::format("{} bytes after {} tokens", grouped(s.state_bytes), grouped(r.longest))});
  table.row({"prompt", prompt.empty() ? "none" : fmt::format("\"{}\"", escape_text(prompt))});
  if (kind == LineKind::choices) choice_rows(table, r);
  if (kind == LineKind::answers) answer_rows(table, r);
  if (kind == LineKind::last_word) word_rows(table, r);
  table.row({"truncated", fmt::format("{} of {}, at the beginning", grouped(r.truncated), grouped(r.lines))});
  table.row({"two forms", forms_text(r.forms)});
  table.row({"time", human_duration(s.wall_s)});
  return table.text();
}

Json question_report_json(const RecallSubject& s, LineKind kind, const std::string& prompt, const QuestionResult& r) {
  Json json = json_report("recall-bench", 1);
  json["model"] = s.model;
  json["mixer"] = s.mixer;
  json["parameters"] = s.parameters;
  json["state_bytes"] = s.state_bytes;
  json["task"] = s.task.name;
  json["data"] = s.data;
  json["task_digest"] = s.digest;
  json["seed"] = s.task.seed;
  json["prompt"] = prompt;
  json["n"] = r.accuracy(kind).n;
  put_share(json, "", r.accuracy(kind));
  json["chance"] = r.chance;
  json["ceiling"] = 1.0;
  if (kind == LineKind::choices) {
    put_share(json, "by_token_", r.choices_by_token);
    put_share(json, "by_byte_", r.choices_by_byte);
  } else if (kind == LineKind::answers) {
    json["contains"] = r.contains.value();
    json["contains_as_is"] = r.contains_as_is.value();
    json["exact_match"] = r.exact.value();
    json["exact_match_as_is"] = r.exact_as_is.value();
    json["f1"] = mean(r.f1_sum, r.contains.n);
    json["answer_in_context"] = r.supported.value();
  } else {
    json["perplexity_per_word"] = std::exp(mean(r.nll_sum_nats, r.words.n));
    json["perplexity_per_token"] = std::exp(mean(r.nll_sum_nats, r.tokens));
  }
  json["spanned_joints"] = r.joints;
  json["truncated"] = r.truncated;
  json["longest_example"] = r.longest;
  json["forms"] = forms_json(r.forms);
  json["wall_s"] = s.wall_s;
  return json;
}

}  // namespace quipu
