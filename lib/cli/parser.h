#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/command_text.h"

namespace quipu {

/// A tool's command line: owns the CLI11 parser, the common options and the texts made from them.
class Parser {
 public:
  explicit Parser(const ToolInfo& info);
  ~Parser();

  Command& root() { return *root_; }
  /// The text that the command line asked for instead of a run (help, version, man page, completion), or nothing
  /// after a full parse. Throws UsageError.
  std::optional<std::string> parse(const std::vector<std::string>& args);
  /// The common options as given; `threads` and `threads_source` are left to the caller.
  const Common& common() const { return common_; }
  std::optional<int> threads_asked() const { return threads_; }
  /// The command to run. After a full parse.
  const Command& chosen() const;

 private:
  void add_common_options();
  void add_threads_option(const Section& common);
  void add_text_option(const std::string& names, const std::string& help, std::function<std::string()> text);
  std::string help() const;
  std::map<std::string, bool> spellings() const;
  std::vector<std::string> checked(const std::vector<std::string>& args) const;
  std::string path_of_chosen() const;
  [[noreturn]] void throw_leftover() const;

  const ToolInfo& info_;
  std::unique_ptr<CLI::App> app_;
  std::unique_ptr<Command> root_;
  Common common_;
  std::optional<int> threads_;
};

}  // namespace quipu
