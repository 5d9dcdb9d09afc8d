#pragma once
#include <string>
#include <utility>
#include <vector>

namespace quipu {

/// What a run came to; the exit status of the process.
enum class Status : int {
  kDone = 0,
  kFailed = 1,      // a file, the system, or a bug
  kUsage = 2,       // the command line or the configuration
  kGateMissed = 3,  // it ran, but a gate that was asked for (--max-ppl, --min-accuracy) was missed
  kNumeric = 4,     // a loss, gradient or parameter is not finite
  kStopped = 75,    // stopped early with all saved: run it again to go on
};

/// A tool in words, for its help and its man page. Texts are plain; an empty line parts paragraphs, a line that
/// starts with a blank is shown as it stands.
struct ToolInfo {
  std::string name;         // "train"
  std::string summary;      // one line, lower case, no full stop
  std::string description;  // paragraphs
  /// Commands with what they do, such as {"train corpus.h5 -o gsa.h5 --mixer gsa", "Train ..."}.
  std::vector<std::pair<std::string, std::string>> examples = {};
  std::string config_example = {};                                    // an example of a file for --config
  std::vector<std::pair<std::string, std::string>> environment = {};  // variables beyond those of every tool
  /// Sections of the man page beyond those of every tool: a heading, and what makes the text.
  std::vector<std::pair<std::string, std::string (*)()>> sections = {};
  bool thread_list = false;    // --threads takes several numbers, which the tool runs with in turn
  bool has_gate = false;       // may end with kGateMissed
  bool stops_cleanly = false;  // handles SIGTERM, SIGINT, SIGUSR1 by polling stop_requested(), and ends with kStopped
  std::string stopping_command = {};  // the one that does, where the others do not
};

/// Every tool, for "SEE ALSO".
inline const std::vector<std::string> kTools = {"convert", "eval-ppl", "generate", "profile", "recall-bench", "train"};

}  // namespace quipu
