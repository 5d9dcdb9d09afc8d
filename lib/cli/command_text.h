#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace quipu {

/// An option or argument in words. Help, man page and completion are written from these, and these are read from the
/// parser, so that none of them can say what the parser does not do.
struct OptionText {
  std::vector<std::string> spellings;  // "-o", "--output"; one without dashes for an argument
  std::string metavar;                 // empty for a switch or an argument
  std::string default_text;
  std::string help;
  bool is_argument = false;
  bool is_required = false;
  bool is_repeatable = false;

  /// The words of a metavar such as "auto|never|FILE" that stand for themselves: "auto", "never".
  std::vector<std::string> choices() const;
  /// Whether the value may be something else than a choice.
  bool takes_free_value() const;
};

struct OptionGroupText {
  std::string title;
  std::vector<OptionText> options;
};

/// A command: its words, its groups in the order of their first options, and its subcommands. Hidden options are
/// left out; the group of common options comes last.
struct CommandText {
  std::string name;
  std::string summary;
  std::string description;
  std::vector<OptionGroupText> groups;
  std::vector<CommandText> commands;

  /// Arguments and required options, in the order of their definition.
  std::vector<const OptionText*> synopsis() const;
};

inline constexpr const char* kCommonGroup = "Common options";

CommandText describe(const CLI::App& app);

/// The text of --help for `path` ("convert text"), in lines of at most `width` columns. `common` are the options that
/// a subcommand takes from its tool (null for the tool itself).
std::string help_text(const CommandText& command, const std::string& path, const OptionGroupText* common,
                      std::size_t width = 80);

/// The synopsis in plain words, such as "train [OPTIONS] DATA.h5 -o FILE".
std::string usage_line(const CommandText& command, const std::string& path);

/// The paragraphs of a text, each on one line: lines that follow each other are joined; an empty line and a line that
/// starts with a blank stand for themselves.
std::vector<std::string> paragraphs(const std::string& text);

/// The paragraphs broken at blanks into lines of at most `width` columns (a longer word stays whole).
std::vector<std::string> wrap(const std::string& text, std::size_t width);

/// The member of `known` that is closest to `word`, where it is close enough to be a slip of the hand; else "".
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace quipu
