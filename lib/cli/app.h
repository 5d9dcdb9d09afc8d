#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/tool_info.h"

namespace quipu {

/// The options that every tool has, as they were given. Threads are set, and the log listens, before a tool runs.
struct Common {
  int threads = 1;
  std::vector<int> thread_list;  ///< of a tool that runs with several in turn; `threads` is the first of them
  std::string threads_source;
  std::string blas = "auto";
  std::uint64_t seed = 1;
  bool seed_given = false;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};

/// A tool or one of its subcommands while it is set up.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// A group of options; the same title may be asked for again.
  Section section(const std::string& title = "Options") const { return {app_, title}; }
  /// A subcommand; a tool that has any needs exactly one on its command line.
  Command& command(const std::string& name, const std::string& summary, const std::string& description = "");
  /// What to do once the command line is read. A tool with subcommands leaves this to them.
  void runs(std::function<Status(const Common&)> run) { run_ = std::move(run); }

  CLI::App& app() const { return *app_; }
  const std::deque<Command>& commands() const { return commands_; }
  Status run(const Common& common) const;

 private:
  CLI::App* app_;
  std::deque<Command> commands_;
  std::function<Status(const Common&)> run_;
};

/// The frame of every tool's main: `setup` adds the options and says what runs; then the command line and --config are
/// read, threads, log and signals prepared, the tool run, and standard output closed with a check. Returns the exit
/// status. Every error ends here, as one line `tool: where: what; what to do` on stderr: UsageError 2, NumericError 4,
/// other errors and a lack of memory 1; a reader of standard output that has gone is a quiet end (0), as in
/// `generate model.h5 | head`, unless the run had come to another status before.
/// Hidden options print the man page (--dump-man) and the bash completion (--dump-completion).
int run_app(const ToolInfo& info, int argc, char** argv, const std::function<void(Command&)>& setup);

}  // namespace quipu
