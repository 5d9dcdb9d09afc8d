#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace quipu {
namespace {

/// Text that troff shows as it is: no macros, and dashes that can be copied into a shell.
std::string escaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i == 0 && (c == '.' || c == '\'')) out += "\\&";
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '\'':
        out += "\\(aq";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string bold(const std::string& text) { return fmt::format("\\fB{}\\fR", escaped(text)); }
std::string italic(const std::string& text) { return fmt::format("\\fI{}\\fR", escaped(text)); }

class Page {
 public:
  void heading(const std::string& title) { out_ += fmt::format(".SH {}\n", quoted(title)); }
  void subheading(const std::string& title) { out_ += fmt::format(".SS {}\n", quoted(title)); }
  void line(const std::string& troff) { out_ += troff + "\n"; }

  /// Running text: paragraphs, and lines that start with a blank as they stand.
  void text(const std::string& words) {
    bool verbatim = false;
    bool gap = false;
    for (const std::string& part : paragraphs(words)) {
      const bool as_it_stands = !part.empty() && part[0] == ' ';
      if (as_it_stands != verbatim && !part.empty()) {
        line(as_it_stands ? ".PP\n.nf" : ".fi");
        verbatim = as_it_stands;
        gap = gap && verbatim;
        if (!verbatim) line(".PP");
      } else if (gap && !verbatim) {
        line(".PP");
      } else if (gap) {
        line("");
      }
      gap = part.empty();
      if (!part.empty()) line(escaped(part));
    }
    if (verbatim) line(".fi");
  }

  void item(const std::string& troff_tag, const std::string& words) {
    line(".TP\n" + troff_tag);
    line(escaped(words));
  }

  /// Lines shown as they stand, indented.
  void listing(const std::string& words) {
    line(".PP\n.RS 4\n.nf");
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t end = std::min(words.find('\n', at), words.size());
      line(end == at ? "\\&" : escaped(words.substr(at, end - at)));
      at = end + 1;
    }
    line(".fi\n.RE");
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string quoted(const std::string& title) {
    std::string safe = escaped(title);
    for (std::size_t at = 0; (at = safe.find('"', at)) != std::string::npos; at += 4) safe.replace(at, 1, "\\(dq");
    return fmt::format("\"{}\"", safe);
  }

  std::string out_;
};

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

std::string option_tag(const OptionText& option) {
  std::string tag;
  for (const std::string& spelling : option.spellings) {
    if (!tag.empty()) tag += ", ";
    tag += option.is_argument ? italic(spelling) : bold(spelling);
  }
  if (!option.metavar.empty()) tag += fmt::format(" {}", italic(option.metavar));
  if (option.is_repeatable) tag += " ...";
  return tag;
}

void add_options(Page& page, const CommandText& command, const std::string& skipped_group) {
  for (const OptionGroupText& group : command.groups) {
    if (group.title == skipped_group) continue;
    page.subheading(group.title);
    for (const OptionText& option : group.options) {
      std::string words = option.help;
      if (option.is_required && !option.is_argument) words += " Required.";
      if (option.is_repeatable && !option.is_argument) words += " May be given several times.";
      if (!option.default_text.empty()) words += fmt::format(" Default: {}.", option.default_text);
      page.item(option_tag(option), words);
    }
  }
}

std::string synopsis(const CommandText& command, const std::string& path) {
  std::string line = bold(path) + " [" + italic("OPTIONS") + "]";
  for (const OptionText* option : command.synopsis()) {
    const std::string name = option->spellings.front();
    std::string part = option->is_argument ? italic(name) : bold(name);
    if (!option->metavar.empty()) part += fmt::format(" {}", italic(option->metavar));
    if (option->is_repeatable) part += " ...";
    line += option->is_required ? " " + part : " [" + part + "]";
  }
  return line;
}

void add_start(Page& page, const ToolInfo& info, const CommandText& tool) {
  page.line(fmt::format(".\\\" Written by {} \\-\\-dump\\-man from its command line parser.", info.name));
  page.line(fmt::format(".TH \"{}\" 1 \"\" \"quipu {}\" \"quipu\"", escaped(upper(info.name)), QUIPU_VERSION));
  page.line(".nh\n.ad l");
  page.heading("NAME");
  page.line(escaped(info.name) + " \\- " + escaped(info.summary));
  page.heading("SYNOPSIS");
  if (tool.commands.empty()) {
    page.line(synopsis(tool, info.name));
  }
  for (const CommandText& command : tool.commands) {
    if (&command != &tool.commands.front()) page.line(".br");
    page.line(synopsis(command, info.name + " " + command.name));
  }
  page.heading("DESCRIPTION");
  page.text(info.description.empty() ? info.summary : info.description);
}

void add_statuses(Page& page, const ToolInfo& info) {
  page.heading("EXIT STATUS");
  page.item("0", "Done. Also where the reader of standard output has gone, as in a pipe to head(1).");
  page.item("1", "Failed: a file is not what it should be, the system refuses, or a bug.");
  page.item("2", "The command line or the configuration asks for something that cannot be.");
  if (info.has_gate) page.item("3", "It ran, but a gate that was asked for was missed.");
  page.item("4", "A loss, gradient or parameter is no longer finite.");
  if (info.stops_cleanly) {
    page.item(
        "75",
        (info.stopping_command.empty() ? std::string() : info.stopping_command + ": ") +
            "Stopped early on SIGTERM, SIGINT, SIGUSR1 or at the end of its time limit, with all saved: run it again "
            "to go on. A second SIGINT kills at once.");
  }
  page.line(".PP");
  page.line("Errors are one line on standard error, saying where, what, and what to do.");
}

void add_environment(Page& page, const ToolInfo& info) {
  page.heading("ENVIRONMENT");
  page.item(bold("OMP_NUM_THREADS"), "Threads, where --threads does not say.");
  page.item(bold("SLURM_CPUS_PER_TASK"),
            "Threads, where neither --threads nor OMP_NUM_THREADS says. Without any of the three, as many as the "
            "process may use processors, within the CPU quota of its control group.");
  page.item(bold("OPENBLAS_CORETYPE"), "The kernels that OpenBLAS uses, such as SkylakeX or Haswell.");
  for (const auto& [name, words] : info.environment) page.item(bold(name), words);
}

void add_configuration(Page& page, const ToolInfo& info, const CommandText& tool) {
  page.heading("CONFIGURATION");
  page.text(
      "A file for --config holds a line key = value for each option, where the key is the long option without its "
      "dashes. It is a subset of TOML: comments after #, \"strings\" with escapes or 'without', numbers, true and "
      "false "
      "for switches, and arrays for options that may be given several times. A bare word may stand for a string. The "
      "command line wins over the file; an unknown key is an error.");
  if (!tool.commands.empty()) {
    page.line(".PP");
    page.text("Keys of a command stand in its section, such as [" + tool.commands.front().name +
              "], or before all sections, where they belong to the command in use.");
  }
  page.line(".PP");
  page.text(
      "Numbers are decimal and may be written 1e6, 64k, 2M or 3G (thousands) and 64Ki, 2Mi or 3Gi (powers of 1024); "
      "times are written 1h30m, 45m or 90s.");
  if (!info.config_example.empty()) page.listing(info.config_example);
}

void add_end(Page& page, const ToolInfo& info) {
  if (!info.examples.empty()) {
    page.heading("EXAMPLES");
    for (const auto& [command, words] : info.examples) {
      page.text(words);
      page.listing(command);
      page.line(".PP");
    }
  }
  page.heading("SEE ALSO");
  std::string list;
  for (const std::string& tool : kTools) {
    if (tool == info.name) continue;
    if (!list.empty()) list += ",\n";
    list += bold(tool) + "(1)";
  }
  page.line(list);
}

}  // namespace

std::string man_page(const ToolInfo& info, const CommandText& tool) {
  Page page;
  add_start(page, info, tool);
  for (const CommandText& command : tool.commands) {
    page.heading(upper(info.name + " " + command.name));
    page.line(escaped(command.summary));
    if (!command.description.empty()) {
      page.line(".PP");
      page.text(command.description);
    }
    add_options(page, command, kCommonGroup);
  }
  page.heading("OPTIONS");
  add_options(page, tool, "");
  for (const auto& [heading, text] : info.sections) {
    page.heading(heading);
    page.text(text());
  }
  add_statuses(page, info);
  add_environment(page, info);
  add_configuration(page, info, tool);
  add_end(page, info);
  return page.take();
}

}  // namespace quipu
