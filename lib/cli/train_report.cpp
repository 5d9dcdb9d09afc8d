#include "cli/train_report.h"

#include <cmath>

#include "base/log.h"
#include "tensor/blas.h"
#include "tensor/linear_products.h"

namespace quipu {
namespace {

std::string bytes_text(std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); }
std::string bytes_text(Index bytes) { return human_bytes(static_cast<double>(bytes)); }

std::string split_text(const Dataset& data, const std::string& name) {
  const Split& split = data.split(name);
  if (split.is_scored()) return fmt::format("{} {} examples of {}", name, grouped(split.examples()), split.length());
  return fmt::format("{} {} tokens in {} document{}", name, grouped(split.tokens()), grouped(split.documents()),
                     split.documents() == 1 ? "" : "s");
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json memory_json(const MemoryEstimate& m) {
  return {{"parameters_bytes", m.parameters},   {"gradients_bytes", m.gradients}, {"optimizer_bytes", m.optimizer},
          {"activations_bytes", m.activations}, {"process_bytes", m.process},     {"total_bytes", m.total()}};
}

}  // namespace

void note_start(const Trainer& trainer, const Dataset& data, const Common& common) {
  const LanguageModel& model = trainer.model();
  const ModelConfig& c = model.config();
  log_note(
      "model: {} layers of {}, channel mixer {}, width {}, {} parameters; a sequence's state is {} after 1k "
      "tokens, {} after 64k, {} after 1M",
      c.layers, c.mixer, c.channel_mixer, c.dim, grouped(model.parameters().count()),
      bytes_text(model.state_bytes(1000)), bytes_text(model.state_bytes(64000)),
      bytes_text(model.state_bytes(1000000)));
  for (const std::string& note : model.notes()) log_note("model: {}", note);
  std::string splits;
  for (const std::string& name : data.split_names())
    if (name.find('/') == std::string::npos) splits += "; " + split_text(data, name);
  log_note("data: {}: {} tokenizer, vocabulary of {}{}", data.name(), data.tokenizer().kind, grouped(data.vocab()),
           splits);
  if (!data.has_split("valid"))
    log_note("data: there is no validation split, so no best checkpoint is kept; `convert text --valid` makes one");
  log_note("threads: {} (from {}); products: {}{}", common.threads, common.threads_source, blas::product_names(),
           linear_precision() == Precision::bf16 ? ", linear layers in bf16" : "");
  if (const std::string advice = blas::narrow_kernel_advice(); !advice.empty()) log_note("products: {}", advice);
  if (!trainer.resumed_from().empty())
    log_note("goes on from {}: step {} of {}", trainer.resumed_from(), grouped(trainer.progress().step),
             grouped(trainer.options().schedule.steps));
}

void note_memory(const MemoryEstimate& m) {
  log_note("memory: about {} (parameters {}, gradients {}, optimizer {}, activations {}, the rest {})",
           bytes_text(m.total()), bytes_text(m.parameters), bytes_text(m.gradients), bytes_text(m.optimizer),
           bytes_text(m.activations), bytes_text(m.process));
}

std::string line_text(const LogLine& line) {
  std::string text = fmt::format("step {}/{}  loss {:.4f}  perplexity {:.2f}", line.step, line.steps, line.loss_nats,
                                 std::exp(line.loss_nats));
  if (line.valid_loss_nats)
    text += fmt::format("  valid {:.4f}  perplexity {:.2f}", *line.valid_loss_nats, std::exp(*line.valid_loss_nats));
  text += fmt::format("  lr {:.2e}  {} tokens/s", line.learning_rate, human_count(line.tokens_per_s));
  if (line.step < line.steps) text += fmt::format("  {} left", human_duration(line.time_left_s));
  return text;
}

void print_dry_run(Trainer& trainer, const MemoryEstimate& memory, bool json) {
  const LanguageModel& model = trainer.model();
  const TrainOptions& o = trainer.options();
  const double flops = trainer.step_flops();
  const Index tokens = o.batch * o.segments * o.length * o.accumulate;
  if (json) {
    Json report = json_report("train-dry-run", 1);
    report["parameters"] = model.parameters().count();
    report["state_bytes_at_1k_tokens"] = model.state_bytes(1000);
    report["state_bytes_at_64k_tokens"] = model.state_bytes(64000);
    report["state_bytes_at_1M_tokens"] = model.state_bytes(1000000);
    report["memory"] = memory_json(memory);
    report["tokens_per_step"] = tokens;
    report["flops_per_step"] = flops;
    report["flops_total"] = flops * static_cast<double>(o.schedule.steps);
    report["config"] = Json::parse(to_json(model.config()));
    return print_json(report);
  }
  Table table({"", ""});
  table.row({"parameters", grouped(model.parameters().count())});
  table.row({"state per sequence",
             fmt::format("{} at 1k tokens, {} at 64k, {} at 1M", bytes_text(model.state_bytes(1000)),
                         bytes_text(model.state_bytes(64000)), bytes_text(model.state_bytes(1000000)))});
  table.row({"memory",
             fmt::format("{}: parameters {}, gradients {}, optimizer {}, activations {}, the rest {}",
                         bytes_text(memory.total()), bytes_text(memory.parameters), bytes_text(memory.gradients),
                         bytes_text(memory.optimizer), bytes_text(memory.activations), bytes_text(memory.process))});
  table.row({"tokens", fmt::format("{} a step, {} in all", grouped(tokens), grouped(tokens * o.schedule.steps))});
  table.row({"FLOPs", fmt::format("{} a step, {} in all", human_count(flops),
                                  human_count(flops * static_cast<double>(o.schedule.steps)))});
  print_table(table);
}

void print_summary(const TrainSummary& s, const Trainer& trainer, bool json, Stream stream) {
  if (json) {
    Json report = json_report("train", 1);
    report["stopped"] = s.stopped;
    report["solved"] = s.solved;
    report["step"] = s.step;
    report["steps"] = s.steps;
    report["tokens"] = s.tokens;
    report["parameters"] = trainer.model().parameters().count();
    report["train_loss_nats"] = s.loss_nats;
    report["valid_loss_nats"] = optional_json(s.valid_nats);
    report["best_valid_loss_nats"] = optional_json(s.best_valid_nats);
    report["best_valid_perplexity"] = s.best_valid_nats ? Json(std::exp(*s.best_valid_nats)) : Json();
    report["best_valid_bits_per_byte"] = s.best_bits_per_byte > 0 ? Json(s.best_bits_per_byte) : Json();
    report["best_step"] = s.best_step;
    report["wall_s"] = s.wall_s;
    report["checkpoint"] = s.last;
    report["best_checkpoint"] = s.best.empty() ? Json() : Json(s.best);
    return print_json(report, stream);
  }
  Table table({"", ""});
  table.row({"steps", fmt::format("{} of {}{}", grouped(s.step), grouped(s.steps),
                                  s.stopped  ? ", stopped"
                                  : s.solved ? ", solved"
                                             : "")});
  table.row({"train loss", fmt::format("{:.4f} nats/token", s.loss_nats)});
  if (s.best_valid_nats) {
    std::string best =
        fmt::format("{:.4f} nats/token, perplexity {:.2f}", *s.best_valid_nats, std::exp(*s.best_valid_nats));
    if (s.best_bits_per_byte > 0) best += fmt::format(", {:.4f} bits/byte", s.best_bits_per_byte);
    table.row({"best validation", fmt::format("{}, at step {}", best, grouped(s.best_step))});
  }
  table.row({"last checkpoint", s.last == "-" ? "standard output" : s.last});
  if (!s.best.empty()) table.row({"best checkpoint", s.best});
  print_table(table, stream);
}

}  // namespace quipu
