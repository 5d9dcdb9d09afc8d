#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

namespace quipu {
namespace {

/// Options by what follows them on the command line.
struct Cases {
  std::vector<std::string> words;         // every option
  std::vector<std::string> choice_lines;  // lines of a shell `case` over the option before the cursor
  std::vector<std::string> free;          // options whose value may be a file
};

void add_options(Cases& cases, const CommandText& command) {
  for (const OptionGroupText& group : command.groups) {
    for (const OptionText& option : group.options) {
      if (option.is_argument) continue;
      cases.words.insert(cases.words.end(), option.spellings.begin(), option.spellings.end());
      const std::string pattern = fmt::format("{}", fmt::join(option.spellings, "|"));
      const auto choices = option.choices();
      if (!choices.empty()) {
        cases.choice_lines.push_back(fmt::format("    {}) choices='{}'; files={} ;;", pattern, fmt::join(choices, " "),
                                                 option.takes_free_value() ? 1 : 0));
      } else if (option.takes_free_value()) {
        cases.free.push_back(pattern);
      }
    }
  }
}

/// Sets `options`, `choices` and `files` for one command.
std::string command_body(const CommandText& tool, const CommandText* command) {
  Cases cases;
  if (command != nullptr) add_options(cases, *command);
  add_options(cases, tool);
  std::string out = fmt::format("    options='{}'\n    case $before in\n", fmt::join(cases.words, " "));
  for (const std::string& line : cases.choice_lines) out += line + "\n";
  if (!cases.free.empty()) out += fmt::format("    {}) files=1; options= ;;\n", fmt::join(cases.free, "|"));
  return out + "    esac\n";
}

}  // namespace

std::string bash_completion(const CommandText& tool) {
  std::string function = "_quipu_" + tool.name;
  std::replace(function.begin(), function.end(), '-', '_');
  std::string out =
      fmt::format("# bash completion for {0}; written by {0} --dump-completion\n{1}() {{\n", tool.name, function);
  out +=
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= choices= files=0 command= i\n"
      "  COMPREPLY=()\n";
  if (tool.commands.empty()) {
    out += command_body(tool, nullptr);
  } else {
    std::vector<std::string> names;
    for (const CommandText& command : tool.commands) names.push_back(command.name);
    out += fmt::format(
        "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case ${{COMP_WORDS[i]}} in\n    {}) command=${{COMP_WORDS[i]}}; "
        "break ;;\n    esac\n  done\n  case $command in\n",
        fmt::join(names, "|"));
    for (const CommandText& command : tool.commands) {
      out += fmt::format("  {})\n{}    ;;\n", command.name, command_body(tool, &command));
    }
    out += fmt::format("  *)\n{}    [[ $before == -* || $word == -* ]] || choices='{}'\n    ;;\n  esac\n",
                       command_body(tool, nullptr), fmt::join(names, " "));
  }
  out +=
      "  if [[ -n $choices ]]; then\n    COMPREPLY=($(compgen -W \"$choices\" -- \"$word\"))\n"
      "    ((files)) || return 0\n"
      "  elif [[ $word == -* && -n $options ]]; then\n    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "    return 0\n  fi\n"
      "  compopt -o filenames 2>/dev/null\n  local IFS=$'\\n'\n"
      "  COMPREPLY+=($(compgen -f -- \"$word\"))\n";
  return out + fmt::format("}}\ncomplete -F {} {}\n", function, tool.name);
}

}  // namespace quipu
