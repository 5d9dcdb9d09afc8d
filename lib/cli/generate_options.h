#pragma once
#include <optional>
#include <string>

#include "cli/app.h"
#include "train/text_generator.h"

namespace quipu {

/// The command line of `generate`.
struct GenerateOptions {
  std::string model, prompt, prompt_file, state_in, state_out;
  std::optional<Index> state_every;
  TextOptions text;
  SamplingOptions sampling;
  std::optional<double> temperature;
  bool echo = false, no_echo = false;

  /// Whether the prompt is shown: one from the command line is, one from a file is not, unless asked otherwise.
  bool shows_prompt(const Common& common) const { return echo || (!no_echo && prompt_file.empty() && !common.json); }
  /// The prompt as it was given, or from its file ("-": standard input).
  TextSource prompt_source() const { return prompt_file.empty() ? text_of(prompt) : text_of_file(prompt_file); }
};

/// The file of the state after `tokens` tokens: out.h5 becomes out-000010000.h5, a name without an ending
/// out-000010000.
std::string state_file_at(const std::string& state_out, std::int64_t tokens);

void add_options(Command& command, GenerateOptions& options);

/// Works out what depends on several options: the prompt "-", the temperature that a filter implies, the seed.
/// Throws UsageError where they do not go together.
void settle(GenerateOptions& options, const Common& common);

}  // namespace quipu
