#include "cli/generate_report.h"

#include "base/log.h"
#include "base/stop.h"
#include "cli/report.h"

namespace quipu {

void report_generation(const Generation& generation, const std::string* text) {
  const auto& [prompt, made, generator, states] = generation;
  log_detail("prompt: {} tokens, {:.0f} tokens/s; text: {} tokens, {:.1f} tokens/s; state: {}", prompt.tokens,
             prompt.tokens_per_s(), made.tokens, made.tokens_per_s(),
             human_bytes(static_cast<double>(generator.state_bytes())));
  if (made.end == TextEnd::stop_request)
    log_note("stopped by {} after {} tokens of the prompt and {} of the text", stop_reason(), prompt.tokens,
             made.tokens);
  if (text == nullptr) return;
  Json json = json_report("generate", 1);
  json["text"] = *text;
  json["tokens"] = made.tokens;
  json["end"] = name_of(made.end);
  json["tokens_per_s"] = made.tokens_per_s();
  json["prompt_tokens"] = prompt.tokens;
  json["prompt_tokens_per_s"] = prompt.tokens_per_s();
  json["stream_tokens"] = generator.tokens();
  json["state_bytes"] = generator.state_bytes();
  json["states"] = states;
  print_json(json);
}

}  // namespace quipu
