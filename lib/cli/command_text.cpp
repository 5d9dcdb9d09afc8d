#include "cli/command_text.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

namespace quipu {
namespace {

OptionText describe_option(const CLI::Option& option) {
  OptionText text;
  text.is_argument = option.get_positional();
  if (text.is_argument) {
    text.spellings = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_snames()) text.spellings.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.spellings.push_back("--" + name);
  }
  if (option.get_expected_max() > 0) text.metavar = option.get_type_name();
  text.default_text = option.get_default_str();
  text.help = option.get_description();
  text.is_required = option.get_required();
  text.is_repeatable = option.get_expected_max() > 1;
  return text;
}

bool is_free(const std::string& alternative) {
  return std::any_of(alternative.begin(), alternative.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

std::vector<std::string> alternatives(const std::string& metavar) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= metavar.size();) {
    const std::size_t end = std::min(metavar.find('|', start), metavar.size());
    if (end > start) parts.push_back(metavar.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::string option_heading(const OptionText& option) {
  std::string heading = fmt::format("{}", fmt::join(option.spellings, ", "));
  if (!option.metavar.empty()) heading += " " + option.metavar;
  if (option.is_repeatable) heading += "...";
  return heading;
}

void append_indented(std::string& out, const std::string& text, std::size_t indent, std::size_t width) {
  for (const std::string& line : wrap(text, width - indent)) {
    out += line.empty() ? "\n" : fmt::format("{:{}}{}\n", "", indent, line);
  }
}

void append_option(std::string& out, const OptionText& option, std::size_t width) {
  constexpr std::size_t kColumn = 30;
  std::string help = option.help;
  if (!option.default_text.empty()) help += fmt::format(" (default: {})", option.default_text);
  const std::string heading = "  " + option_heading(option);
  if (heading.size() + 2 > kColumn) {
    out += heading + "\n";
    append_indented(out, help, kColumn, width);
    return;
  }
  std::string body;
  append_indented(body, help, kColumn, width);
  out += heading + body.substr(std::min(heading.size(), body.size()));
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> OptionText::choices() const {
  if (metavar.find('|') == std::string::npos) return {};
  std::vector<std::string> words;
  for (const std::string& part : alternatives(metavar)) {
    if (!is_free(part)) words.push_back(part);
  }
  return words;
}

bool OptionText::takes_free_value() const {
  const auto parts = alternatives(metavar);
  return std::any_of(parts.begin(), parts.end(), is_free);
}

std::vector<const OptionText*> CommandText::synopsis() const {
  std::vector<const OptionText*> parts;
  for (const bool arguments : {true, false}) {
    for (const OptionGroupText& group : groups) {
      for (const OptionText& option : group.options) {
        if (option.is_argument == arguments && (arguments || option.is_required)) parts.push_back(&option);
      }
    }
  }
  return parts;
}

CommandText describe(const CLI::App& app) {
  CommandText command;
  command.name = app.get_name();
  const std::string words = app.get_description();
  const std::size_t cut = std::min(words.find("\n\n"), words.size());
  command.summary = words.substr(0, cut);
  command.description = words.substr(std::min(cut + 2, words.size()));
  for (const CLI::Option* option : app.get_options()) {
    const std::string& title = option->get_group();
    if (title.empty()) continue;
    auto group = std::find_if(command.groups.begin(), command.groups.end(),
                              [&](const OptionGroupText& other) { return other.title == title; });
    if (group == command.groups.end()) group = command.groups.insert(group, OptionGroupText{title, {}});
    group->options.push_back(describe_option(*option));
  }
  std::stable_partition(command.groups.begin(), command.groups.end(),
                        [](const OptionGroupText& group) { return group.title == "Arguments"; });
  std::stable_partition(command.groups.begin(), command.groups.end(),
                        [](const OptionGroupText& group) { return group.title != kCommonGroup; });
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    command.commands.push_back(describe(*sub));
  }
  return command;
}

std::string usage_line(const CommandText& command, const std::string& path) {
  std::string line = path;
  if (!command.commands.empty()) return line + " COMMAND [OPTIONS] ...";
  line += " [OPTIONS]";
  for (const OptionText* option : command.synopsis()) {
    std::string part = option->spellings.front();
    if (!option->metavar.empty()) part += " " + option->metavar;
    if (option->is_repeatable) part += "...";
    line += option->is_required ? " " + part : " [" + part + "]";
  }
  return line;
}

std::string help_text(const CommandText& command, const std::string& path, const OptionGroupText* common,
                      std::size_t width) {
  std::string out = fmt::format("Usage: {}\n\n", usage_line(command, path));
  append_indented(out, command.summary, 0, width);
  if (!command.description.empty()) {
    out += "\n";
    append_indented(out, command.description, 0, width);
  }
  if (!command.commands.empty()) {
    out += "\nCommands:\n";
    for (const CommandText& sub : command.commands) {
      append_option(out, {.spellings = {sub.name}, .metavar = {}, .default_text = {}, .help = sub.summary}, width);
    }
    out += fmt::format("  ({} COMMAND --help says more)\n", path);
  }
  const auto append_group = [&](const OptionGroupText& group) {
    out += fmt::format("\n{}:\n", group.title);
    for (const OptionText& option : group.options) append_option(out, option, width);
  };
  for (const OptionGroupText& group : command.groups) append_group(group);
  if (common != nullptr) append_group(*common);
  return out;
}

std::vector<std::string> paragraphs(const std::string& text) {
  std::vector<std::string> parts;
  bool open = false;  // whether the next line goes on with the last part
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const bool stands_alone = line.empty() || line[0] == ' ';
    if (open && !stands_alone) {
      parts.back() += " " + line;
    } else {
      parts.push_back(line);
    }
    open = !stands_alone;
    at = end + 1;
  }
  return parts;
}

std::vector<std::string> wrap(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& part : paragraphs(text)) {
    std::string line;
    for (std::size_t at = 0; at < part.size();) {
      // The blanks before an indented line belong to its first word.
      const std::size_t start = at == 0 ? std::min(part.find_first_not_of(' '), part.size()) : at;
      const std::size_t end = std::min(part.find(' ', start), part.size());
      const std::string word = part.substr(at, end - at);
      if (!line.empty() && line.size() + 1 + word.size() > width) lines.push_back(std::exchange(line, {}));
      line += line.empty() ? word : " " + word;
      at = end + 1;
    }
    lines.push_back(line);
  }
  return lines;
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = word.size() / 3 + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance || (distance == best_distance && best.empty())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace quipu
