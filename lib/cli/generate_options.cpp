#include "cli/generate_options.h"

#include <utility>

#include "cli/console.h"

namespace quipu {

std::string state_file_at(const std::string& state_out, std::int64_t tokens) {
  const std::size_t name = state_out.find_last_of('/') + 1;  // 0 where there is no folder
  const std::size_t dot = state_out.find_last_of('.');
  const std::size_t end = dot == std::string::npos || dot <= name ? state_out.size() : dot;
  return fmt::format("{}-{:09}{}", state_out.substr(0, end), tokens, state_out.substr(end));
}

void add_options(Command& command, GenerateOptions& o) {
  const Section text = command.section("Text");
  add_argument(text, "MODEL.h5", o.model, true, "checkpoint that train wrote (- for standard input)");
  auto& prompt = add_argument(text, "PROMPT", o.prompt, false, "text to go on with; - reads it from standard input");
  exclude(prompt, add_text(text, "--prompt-file", o.prompt_file, "FILE", "read the prompt from a text file (or gzip)"));
  add_count(text, "--tokens", o.text.tokens, 0, kMaxCount, "tokens to generate at most");
  add_texts(text, "--stop", o.text.stops, "TEXT", "end before this text; may be given several times");
  auto& echo = add_flag(text, "--echo", o.echo, "show the prompt before the text");
  exclude(echo, add_flag(text, "--no-echo", o.no_echo, "show the new text alone"));

  const Section sampling = command.section("Sampling");
  SamplingOptions& s = o.sampling;
  add_real(sampling, "--temperature", o.temperature, at_least(0), "above 1 more variety, below 1 less; 0: greedy");
  add_count(sampling, "--top-k", s.top_k, 0, kMaxCount, "keep the N most likely tokens; 0: all");
  add_real(sampling, "--top-p", s.top_p, above_to(0, 1), "keep the fewest likely tokens with this much probability");
  add_real(sampling, "--min-p", s.min_p, between(0, 1), "keep tokens at least X times as likely as the likeliest");
  add_real(sampling, "--repetition-penalty", s.repetition_penalty, above(0),
           "make tokens that are among the last 256 less likely (above 1)");

  const Section state = command.section("State");
  add_text(state, "--state-in", o.state_in, "FILE", "go on from this state");
  add_text(state, "--state-out", o.state_out, "FILE", "save the state at the end");
  add_count(state, "--state-every", o.state_every, 1, kMaxCount,
            "save it after every N tokens while the prompt is read, too, as FILE-000010000.h5");
}

void settle(GenerateOptions& o, const Common& common) {
  if (o.prompt == "-") o.prompt_file = std::exchange(o.prompt, {});
  if (o.prompt_file == "-") require_not_terminal("the prompt");
  if ((o.model == "-") + (o.prompt_file == "-") + (o.state_in == "-") > 1)
    throw UsageError("-: standard input brings one of model, prompt and state; give the others as files");
  refuse_input_as_output(o.state_out, {o.model, o.prompt_file});
  if (o.state_out == "-") throw UsageError("--state-out -: standard output carries the text; give a file");
  if (o.state_every && o.state_out.empty())
    throw UsageError("--state-every {}: the files are named after that of --state-out; give --state-out FILE",
                     *o.state_every);
  const bool filtered = o.sampling.top_k > 0 || o.sampling.top_p < 1 || o.sampling.min_p > 0;
  o.sampling.temperature = o.temperature.value_or(filtered ? 1 : 0);
  o.sampling.seed = common.seed;
}

}  // namespace quipu
