#include "cli/recall_report.h"

#include <algorithm>

namespace quipu {
namespace {

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

Json forms_json(const FormComparison& forms) {
  Json json;
  json["examples"] = forms.rows;
  json["tokens"] = forms.tokens;
  json["accuracy_parallel"] = Share{forms.right_parallel, forms.tokens}.value();
  json["accuracy_recurrent"] = Share{forms.right_recurrent, forms.tokens}.value();
  json["differing"] = forms.differing;
  json["disagreeing"] = forms.disagreeing;
  json["logit_difference"] = forms.logit_difference;
  return json;
}

std::string forms_text(const FormComparison& forms) {
  if (forms.tokens == 0) return "not compared";
  return fmt::format(
      "accuracy {:.4g} and {:.4g} (parallel and recurrent) on {} tokens of {} examples; {} predictions "
      "differ, none by more than rounding; logits within {:.1e}",
      Share{forms.right_parallel, forms.tokens}.value(), Share{forms.right_recurrent, forms.tokens}.value(),
      grouped(forms.tokens), grouped(forms.rows), grouped(forms.differing), forms.logit_difference);
}

Index longest_input(const LanguageModel& model) {
  return model.memory() == Memory::fixed_length ? model.config().length : 0;
}

std::string share_text(const Share& share) {
  return fmt::format("{:.4f}  (95 %: {:.4f} to {:.4f})", share.value(), share.low(), share.high());
}

void put_share(Json& json, const std::string& prefix, const Share& share) {
  json[prefix + "accuracy"] = share.value();
  json[prefix + "accuracy_low"] = share.low();
  json[prefix + "accuracy_high"] = share.high();
}

const Share& accuracy_of(const RecallSubject& subject, const RecallResult& result) {
  return subject.task.whole_examples ? result.examples : result.tokens;
}

std::string recall_report_text(const RecallSubject& s, const RecallResult& result) {
  const Share& accuracy = accuracy_of(s, result);
  Table table({"", ""});
  table.row({"task", s.task.parameters.empty() ? s.task.name : s.task.name + ", " + s.task.parameters});
  table.row({"data", fmt::format("{}, split {}, digest {}, seed {}", s.data, s.split, s.digest, s.task.seed)});
  table.row({"model", fmt::format("{}, {}, {} parameters", s.model, s.mixer, grouped(s.parameters))});
  table.row({"state", fmt::format("{} bytes after {} tokens", grouped(s.state_bytes), grouped(result.longest))});
  table.row({"accuracy", share_text(accuracy)});
  table.row({"n", fmt::format("{} {}", grouped(accuracy.n), s.task.whole_examples ? "examples" : "scored tokens")});
  std::string chance = fmt::format("{:.4g}", s.task.chance);
  if (s.task.chance_among_seen)
    chance += fmt::format("; {:.4g} among the answers that stood in the example", *s.task.chance_among_seen);
  table.row({"chance", chance});
  table.row({"ceiling", fmt::format("{:.4g}", s.task.ceiling)});
  if (s.task.whole_examples)
    table.row({"tokens right", fmt::format("{}, of {}", share_text(result.tokens), grouped(result.tokens.n))});
  else
    table.row({"examples right", fmt::format("{}, of {}", share_text(result.examples), grouped(result.examples.n))});
  table.row({"nats per token",
             fmt::format("{:.6g}", result.nll_sum_nats / static_cast<double>(std::max<Index>(1, result.tokens.n)))});
  table.row({"two forms", forms_text(result.forms)});
  table.row({"time", human_duration(s.wall_s)});
  std::string text = table.text();
  if (result.by_distance.size() > 1) {
    Table bins({"distance from", "to", "n", "accuracy", "low", "high"});
    for (const auto& [from, share] : result.by_distance)
      bins.row({fmt::to_string(from), fmt::to_string(2 * from - 1), fmt::to_string(share.n),
                fmt::format("{:.4f}", share.value()), fmt::format("{:.4f}", share.low()),
                fmt::format("{:.4f}", share.high())});
    text += '\n';
    text += bins.text();
  }
  return text;
}

Json recall_report_json(const RecallSubject& s, const RecallResult& result) {
  const Share& accuracy = accuracy_of(s, result);
  Json json = json_report("recall-bench", 1);
  json["model"] = s.model;
  json["mixer"] = s.mixer;
  json["parameters"] = s.parameters;
  json["state_bytes"] = s.state_bytes;
  json["task"] = s.task.name;
  json["task_parameters"] = s.task.parameters;
  json["data"] = s.data;
  json["split"] = s.split;
  json["task_digest"] = s.digest;
  json["seed"] = s.task.seed;
  json["metric"] = s.task.whole_examples ? "examples" : "tokens";
  json["n"] = accuracy.n;
  put_share(json, "", accuracy);
  json["chance"] = s.task.chance;
  json["chance_among_seen"] = optional_json(s.task.chance_among_seen);
  json["ceiling"] = s.task.ceiling;
  json["tokens"] = result.tokens.n;
  put_share(json, "token_", result.tokens);
  json["examples"] = result.examples.n;
  put_share(json, "example_", result.examples);
  json["longest_example"] = result.longest;
  json["nats_per_token"] = result.nll_sum_nats / static_cast<double>(std::max<Index>(1, result.tokens.n));
  json["forms"] = forms_json(result.forms);
  json["by_distance"] = Json::array();
  for (const auto& [from, share] : result.by_distance) {
    Json bin{{"distance_from", from}, {"distance_to", 2 * from - 1}, {"n", share.n}};
    put_share(bin, "", share);
    json["by_distance"].push_back(bin);
  }
  json["wall_s"] = s.wall_s;
  return json;
}

}  // namespace quipu
