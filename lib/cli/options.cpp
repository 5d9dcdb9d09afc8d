#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"

namespace quipu {
namespace {

CLI::Option& add_spec(const Section& section, const OptionSpec& spec, CLI::callback_t set) {
  CLI::Option* option = section.app->add_option(spec.names, std::move(set), spec.help);
  option->group(section.title);
  option->type_name(spec.metavar);
  option->default_str(spec.default_text);
  if (!option->get_positional() && option->get_lnames().empty()) {
    throw InternalError("option {} has no long name", spec.names);
  }
  return *option;
}

}  // namespace

std::string option_label(const std::string& names) {
  const std::size_t long_name = names.find("--");
  if (long_name == std::string::npos) return names;
  return names.substr(long_name, names.find(',', long_name) - long_name);
}

CLI::Option& add_value(const Section& section, const OptionSpec& spec, std::function<void(const std::string&)> set) {
  CLI::Option& option = add_spec(section, spec, [set = std::move(set)](const CLI::results_t& texts) {
    set(texts.back());
    return true;
  });
  option.multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return option;
}

CLI::Option& add_values(const Section& section, const OptionSpec& spec,
                        std::function<void(const std::vector<std::string>&)> set) {
  CLI::Option& option = add_spec(section, spec, [set = std::move(set)](const CLI::results_t& texts) {
    set(texts);
    return true;
  });
  option.multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (option.get_positional()) {
    // An argument takes values up to its expected number. CLI11's own way, allow_extra_args, would split "[a,b]".
    constexpr int kMany = CLI::detail::expected_max_vector_size - 1;
    option.expected(kMany, kMany);
  } else {
    // One value a time: without extra arguments a file name after the value is not swallowed.
    option.expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args(false);
  }
  return option;
}

CLI::Option& add_flag(const Section& section, const std::string& names, bool& value, const std::string& help) {
  CLI::Option& option =
      add_spec(section, {names, "", help}, [&value, label = option_label(names)](const CLI::results_t& texts) {
        value = parse_boolean(label, texts.back());
        return true;
      });
  option.multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->expected(0);
  return option;
}

std::vector<Index> parse_counts(const std::string& label, const std::string& text, Index min, Index max) {
  std::vector<Index> counts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    counts.push_back(parse_integer(label, text.substr(begin, end - begin), min, max));
    begin = end + 1;
  }
  return counts;
}

CLI::Option& required(CLI::Option& option) {
  option.required();
  return option;
}

void exclude(CLI::Option& a, CLI::Option& b) { a.excludes(&b); }

bool given(const CLI::Option& option) { return option.count() > 0; }

std::vector<std::string> given_words(const CLI::App& app, const std::vector<std::string>& titles) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_positional()) continue;
    if (std::ranges::find(titles, option->get_group()) == titles.end()) continue;
    const std::string name = "--" + option->get_lnames().front();
    const std::vector<std::string>& values = option->results();
    const bool takes_last = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast;
    if (option->get_expected_max() == 0) {
      if (parse_boolean(name, values.back())) words.push_back(name);
      continue;
    }
    for (const std::string& value : takes_last ? std::vector<std::string>{values.back()} : values) {
      words.push_back(name);
      words.push_back(value);
    }
  }
  return words;
}

namespace detail {

std::string text_of(Index value) { return fmt::format("{}", value); }
std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(const std::string& value) { return value; }

}  // namespace detail

CLI::Option& add_choice(const Section& section, const std::string& names, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help) {
  const std::string list = fmt::format("{}", fmt::join(choices, "|"));
  return add_value(
      section, {names, list, help, value}, [&value, choices, label = option_label(names)](const std::string& text) {
        if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
          throw UsageError("{}: \"{}\" is not a choice; give one of {}", label, text, fmt::join(choices, ", "));
        }
        value = text;
      });
}

CLI::Option& add_texts(const Section& section, const std::string& names, std::vector<std::string>& values,
                       const std::string& metavar, const std::string& help) {
  return add_values(section, {names, metavar, help},
                    [&values](const std::vector<std::string>& texts) { values = texts; });
}

CLI::Option& add_argument(const Section& section, const std::string& name, std::string& value, bool is_required,
                          const std::string& help) {
  CLI::Option& option = add_value({section.app, "Arguments"}, {name, "", help, value},
                                  [&value](const std::string& text) { value = text; });
  option.required(is_required);
  return option;
}

CLI::Option& add_arguments(const Section& section, const std::string& name, std::vector<std::string>& values,
                           bool is_required, const std::string& help) {
  CLI::Option& option = add_values({section.app, "Arguments"}, {name, "", help},
                                   [&values](const std::vector<std::string>& texts) { values = texts; });
  option.required(is_required);
  return option;
}

}  // namespace quipu
