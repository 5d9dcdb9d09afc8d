#pragma once
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/number.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace quipu {

/// A titled group of a command's options, as help and man page show it.
struct Section {
  CLI::App* app = nullptr;
  std::string title = "Options";
};

/// What help, man page, completion and configuration need to know of one option or argument.
struct OptionSpec {
  /// "-o,--output", or "DATA.h5" for an argument without dashes. Every option has a long name.
  std::string names;
  /// "N", "FILE", or the choices "constant|linear|cosine". Capitals stand for a value, lower case for itself.
  std::string metavar;
  std::string help;
  std::string default_text = {};
};

/// The long name (or the name of an argument), which opens the messages about its value.
std::string option_label(const std::string& names);

/// One value; an option given twice takes the last. `set` may throw UsageError.
CLI::Option& add_value(const Section& section, const OptionSpec& spec, std::function<void(const std::string&)> set);

/// Any number of values: an option takes one each time it is given, an argument takes all that come.
/// `set` gets all of them, at least one.
CLI::Option& add_values(const Section& section, const OptionSpec& spec,
                        std::function<void(const std::vector<std::string>&)> set);

/// A switch without a value (a configuration file gives it true or false).
CLI::Option& add_flag(const Section& section, const std::string& names, bool& value, const std::string& help);

/// The command line and configuration must give the option.
CLI::Option& required(CLI::Option& option);
/// Counts between commas, as in "1,2,4". Throws UsageError.
std::vector<Index> parse_counts(const std::string& label, const std::string& text, Index min, Index max);

/// At most one of the two may be given.
void exclude(CLI::Option& a, CLI::Option& b);
/// Whether the command line or the configuration gave the option. For use after parsing.
bool given(const CLI::Option& option);

/// The options of groups with these titles that were given, as the words of a command line.
std::vector<std::string> given_words(const CLI::App& app, const std::vector<std::string>& titles);

namespace detail {

template <typename T>
struct Plain {
  using type = T;
};
template <typename T>
struct Plain<std::optional<T>> {
  using type = T;
};

std::string text_of(Index value);
std::string text_of(double value);
std::string text_of(const std::string& value);

/// The default to show: none for an optional that is empty.
template <typename T>
std::string default_of(const T& value) {
  if constexpr (std::is_integral_v<T>)
    return text_of(static_cast<Index>(value));
  else if constexpr (std::is_floating_point_v<T>)
    return text_of(static_cast<double>(value));
  else
    return text_of(value);
}
template <typename T>
std::string default_of(const std::optional<T>& value) {
  return value ? default_of(*value) : std::string();
}

}  // namespace detail

/// `value` may be of any of these types or an optional of one; an empty optional shows no default.
template <typename T>
concept CountTarget =
    std::integral<typename detail::Plain<T>::type> && !std::same_as<typename detail::Plain<T>::type, bool>;
template <typename T>
concept RealTarget = std::floating_point<typename detail::Plain<T>::type>;
template <typename T>
concept TextTarget = std::same_as<typename detail::Plain<T>::type, std::string>;

/// A whole number in min .. max: 2000, 1e6, 64k, 8Ki.
template <CountTarget T>
CLI::Option& add_count(const Section& section, const std::string& names, T& value, Index min, Index max,
                       const std::string& help) {
  using Plain = typename detail::Plain<T>::type;
  if (std::cmp_less(std::numeric_limits<Plain>::max(), max))
    max = static_cast<Index>(std::numeric_limits<Plain>::max());
  return add_value(section, {names, "N", help, detail::default_of(value)},
                   [&value, min, max, label = option_label(names)](const std::string& text) {
                     value = static_cast<Plain>(parse_integer(label, text, min, max));
                   });
}

/// A finite real number within bounds.
template <RealTarget T>
CLI::Option& add_real(const Section& section, const std::string& names, T& value, const Bounds& bounds,
                      const std::string& help) {
  using Plain = typename detail::Plain<T>::type;
  return add_value(section, {names, "X", help, detail::default_of(value)},
                   [&value, bounds, label = option_label(names)](const std::string& text) {
                     value = static_cast<Plain>(parse_real(label, text, bounds));
                   });
}

/// Seconds, written 1h30m, 90s or 45m.
template <RealTarget T>
CLI::Option& add_duration(const Section& section, const std::string& names, T& seconds, const std::string& help) {
  using Plain = typename detail::Plain<T>::type;
  return add_value(section, {names, "TIME", help}, [&seconds, label = option_label(names)](const std::string& text) {
    seconds = static_cast<Plain>(parse_duration(label, text));
  });
}

/// Any text: a file name, a pattern, a prompt.
template <TextTarget T>
CLI::Option& add_text(const Section& section, const std::string& names, T& value, const std::string& metavar,
                      const std::string& help) {
  return add_value(section, {names, metavar, help, detail::default_of(value)},
                   [&value](const std::string& text) { value = text; });
}

/// One of a few words; `value` is the default.
CLI::Option& add_choice(const Section& section, const std::string& names, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help);

/// A repeatable option: one text each time.
CLI::Option& add_texts(const Section& section, const std::string& names, std::vector<std::string>& values,
                       const std::string& metavar, const std::string& help);

/// An argument without dashes, such as "DATA.h5"; optional ones come after required ones.
CLI::Option& add_argument(const Section& section, const std::string& name, std::string& value, bool is_required,
                          const std::string& help);

/// All arguments that are left, such as "FILE".
CLI::Option& add_arguments(const Section& section, const std::string& name, std::vector<std::string>& values,
                           bool is_required, const std::string& help);

}  // namespace quipu
