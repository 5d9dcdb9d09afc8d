#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "cli/command_text.h"
#include "cli/config_file.h"

namespace quipu {
namespace {

CLI::App* find_command(CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

/// The option with this long name that a configuration file may set; null where there is none.
CLI::Option* find_option(CLI::App& app, const std::string& key) {
  CLI::Option* option = app.get_option_no_throw("--" + key);
  return option != nullptr && option->get_configurable() && !option->get_group().empty() ? option : nullptr;
}

std::vector<std::string> known_keys(const std::vector<CLI::App*>& apps) {
  std::vector<std::string> keys;
  for (CLI::App* app : apps) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        if (find_option(*app, name) != nullptr) keys.push_back(name);
      }
    }
  }
  return keys;
}

class ConfigReader : public CLI::Config {
 public:
  explicit ConfigReader(CLI::App& root) : root_(root) {}

  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return {}; }

  /// Sets the options itself, so that an error can name file and line; leaves nothing to CLI11.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    const std::string file = root_.get_config_ptr()->as<std::string>();
    const std::string text{std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
    if (input.bad()) throw UsageError("--config: {}: cannot be read; give a text file", file);
    for (const ConfigEntry& entry : parse_config(text, file)) {
      try {
        apply(entry);
      } catch (const UsageError& error) {
        throw UsageError("{}:{}: {}", file, entry.line, error.what());
      }
    }
    return {};
  }

 private:
  void apply(const ConfigEntry& entry) const {
    const std::vector<CLI::App*> used = root_.get_subcommands();
    std::vector<CLI::App*> scope = {&root_};
    bool in_use = true;
    if (entry.section.empty()) {
      scope.insert(scope.end(), used.begin(), used.end());
    } else {
      CLI::App* command = entry.section.size() == 1 ? find_command(root_, entry.section[0]) : nullptr;
      if (command == nullptr) {
        throw UsageError("unknown section [{}]; it must be a command of {}", fmt::join(entry.section, "."),
                         root_.get_name());
      }
      in_use = std::find(used.begin(), used.end(), command) != used.end();
      scope = {command};
    }
    CLI::Option* option = nullptr;
    for (CLI::App* app : scope) {
      if (option == nullptr) option = find_option(*app, entry.key);
    }
    if (option == nullptr) throw_unknown(entry.key, scope);
    if (in_use) set(*option, entry);
  }

  [[noreturn]] static void throw_unknown(const std::string& key, const std::vector<CLI::App*>& scope) {
    const std::string close = nearest(key, known_keys(scope));
    if (!close.empty()) throw UsageError("unknown key {}; did you mean {}?", key, close);
    throw UsageError("unknown key {}; a key is a long option without its dashes", key);
  }

  static void set(CLI::Option& option, const ConfigEntry& entry) {
    const bool is_switch = option.get_expected_max() == 0;
    const bool repeatable = option.get_expected_max() > 1;
    if (!repeatable && entry.is_array)
      throw UsageError("{} takes one value, not an array; write it without [ ]", entry.key);
    if (!option.empty() || entry.values.empty()) return;  // the command line wins
    if (is_switch) {
      option.add_result(entry.values.front());
    } else {
      option.add_result(entry.values);
    }
    option.run_callback();
  }

  CLI::App& root_;
};

}  // namespace

std::shared_ptr<CLI::Config> config_reader(CLI::App& root) { return std::make_shared<ConfigReader>(root); }

}  // namespace quipu
