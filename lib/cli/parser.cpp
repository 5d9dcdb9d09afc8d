#include "cli/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "base/error.h"
#include "cli/build_info.h"
#include "cli/completion.h"
#include "cli/config_file.h"
#include "cli/man_page.h"

namespace quipu {
namespace {

/// Thrown from within the parser where an option asks for a text at once, whatever else the command line holds.
struct TextWanted {
  std::string text;
};

std::vector<CLI::App*> all_subcommands(const CLI::App& app) {
  return const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; });
}

/// CLI11's sentence as a clause of ours.
std::string clause(std::string text) {
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && !(text[1] >= 'A' && text[1] <= 'Z')) {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

std::string first_word(const std::string& text) { return text.substr(0, text.find_first_of(" :")); }

}  // namespace

Parser::Parser(const ToolInfo& info) : info_(info) {
  std::string words = info.summary;
  if (!info.description.empty()) words += "\n\n" + info.description;
  app_ = std::make_unique<CLI::App>(words, info.name);
  app_->set_help_flag();
  root_ = std::make_unique<Command>(*app_);
  add_common_options();
}

Parser::~Parser() = default;

void Parser::add_text_option(const std::string& names, const std::string& help_text,
                             std::function<std::string()> text) {
  CLI::Option* option = app_->add_option(
      names, [text = std::move(text)](const CLI::results_t&) -> bool { throw TextWanted{text()}; }, help_text);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->expected(0);
  option->trigger_on_parse()->configurable(false)->group(help_text.empty() ? "" : kCommonGroup);
}

void Parser::add_common_options() {
  const Section common{app_.get(), kCommonGroup};
  add_text_option("-h,--help", "Say what the tool does and list its options.", [this] { return help(); });
  add_text_option("--version", "Say which version this is, of quipu and of the libraries in use.",
                  [this] { return version_text(info_.name, build_info()); });
  CLI::Option* config = app_->set_config("--config", "", "Read options from FILE; the command line wins over it.");
  config->type_name("FILE")->group(kCommonGroup);
  config->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app_->config_formatter(config_reader(*app_));
  add_threads_option(common);
  add_choice(common, "--blas", common_.blas, {"auto", "openblas", "onednn"},
             "Library of the large matrix products; auto takes oneDNN where it was built in and the CPU has AVX-512.");
  add_count(common, "--seed", common_.seed, 0, kMaxCount, "Seed of all random numbers.");
  add_flag(common, "--json", common_.json, "Write results as JSON, one object a line.");
  add_flag(common, "--quiet", common_.quiet, "No progress and no notes; warnings and errors remain.");
  add_flag(common, "--verbose", common_.verbose, "Say more about what is going on (wins over --quiet).");
  add_text_option("--dump-man", "", [this] { return man_page(info_, describe(*app_)); });
  add_text_option("--dump-completion", "", [this] { return bash_completion(describe(*app_)); });
}

void Parser::add_threads_option(const Section& common) {
  constexpr const char* kElse = "Without it OMP_NUM_THREADS, SLURM_CPUS_PER_TASK, or the processors at hand.";
  constexpr Index kMost = 4096;
  if (!info_.thread_list) {
    add_count(common, "--threads", threads_, 1, kMost, fmt::format("Threads to use. {}", kElse));
    return;
  }
  add_value(
      common,
      {"--threads", "N,N,..", fmt::format("Threads to use, as 2, or several numbers in turn, as 1,2. {}", kElse), ""},
      [this](const std::string& text) {
        common_.thread_list.clear();
        for (const Index threads : parse_counts("--threads", text, 1, kMost))
          common_.thread_list.push_back(static_cast<int>(threads));
        threads_ = common_.thread_list.front();
      });
}

std::string Parser::path_of_chosen() const {
  std::string path = info_.name;
  for (const CLI::App* sub : app_->get_subcommands()) path += " " + sub->get_name();
  return path;
}

std::string Parser::help() const {
  const CommandText tool = describe(*app_);
  for (const CLI::App* sub : app_->get_subcommands()) {
    return help_text(describe(*sub), path_of_chosen(), &tool.groups.back());
  }
  return help_text(tool, info_.name, nullptr);
}

/// Whether each option takes a value, by its spellings, over the tool and all its commands; an option that does in one
/// and does not in another is left out.
std::map<std::string, bool> Parser::spellings() const {
  std::vector<CLI::App*> apps = all_subcommands(*app_);
  apps.push_back(app_.get());
  std::map<std::string, bool> known;
  std::set<std::string> unclear;
  for (const CLI::App* app : apps) {
    for (const CLI::Option* option : app->get_options()) {
      const bool takes_value = option->get_expected_max() > 0;
      const auto add = [&](const std::string& name) {
        if (known.emplace(name, takes_value).first->second != takes_value) unclear.insert(name);
      };
      for (const std::string& name : option->get_snames()) add("-" + name);
      for (const std::string& name : option->get_lnames()) add("--" + name);
    }
  }
  for (const std::string& name : unclear) known.erase(name);
  return known;
}

/// Mends two habits of CLI11: it takes `--name=` for `--name` and eats the next argument (here it becomes
/// `--name ""`), and it takes a following option for the value that was forgotten (here an error).
std::vector<std::string> Parser::checked(const std::vector<std::string>& args) const {
  const std::map<std::string, bool> known = spellings();
  const auto takes_value = [&](const std::string& name) {
    const auto option = known.find(name);
    return option != known.end() && option->second;
  };
  std::vector<std::string> out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--") {
      out.insert(out.end(), args.begin() + static_cast<std::ptrdiff_t>(i), args.end());
      break;
    }
    const std::string name = arg.ends_with('=') ? arg.substr(0, arg.size() - 1) : arg;
    out.push_back(takes_value(name) ? name : arg);
    if (!takes_value(name)) continue;
    if (name != arg) {
      out.emplace_back();
    } else if (i + 1 < args.size()) {
      const std::string& value = args[++i];
      if (value.starts_with("--") && known.contains(value)) {
        throw UsageError("{0}: its value is missing before {1}; write {0}{2}{1} if that is meant", name, value,
                         name.starts_with("--") ? "=" : "");
      }
      out.push_back(value);
    }
  }
  return out;
}

void Parser::throw_leftover() const {
  const std::vector<std::string> left = app_->remaining(true);
  const std::string word = left.empty() ? "" : left.front();
  if (!word.starts_with("-") || word == "-") {
    std::vector<std::string> commands;
    for (const CLI::App* sub : all_subcommands(*app_)) commands.push_back(sub->get_name());
    if (!commands.empty() && app_->get_subcommands().empty()) {
      throw UsageError("\"{}\" is not a command; give one of {}", word, fmt::join(commands, ", "));
    }
    throw UsageError("\"{}\" is one argument too many; see {} --help", word, path_of_chosen());
  }
  const std::string name = word.substr(0, word.find('='));
  std::vector<CLI::App*> apps = app_->get_subcommands();
  apps.push_back(app_.get());
  std::vector<std::string> known;
  for (const CLI::App* app : apps) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& other : option->get_lnames()) known.push_back("--" + other);
    }
  }
  const std::string close = name.starts_with("--") ? nearest(name, known) : "";
  if (!close.empty())
    throw UsageError("unknown option {}; did you mean {}? See {} --help", name, close, path_of_chosen());
  throw UsageError("unknown option {}; see {} --help", name, path_of_chosen());
}

std::optional<std::string> Parser::parse(const std::vector<std::string>& args) {
  std::vector<std::string> reversed = checked(args);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app_->parse(std::move(reversed));
  } catch (const TextWanted& wanted) {
    return wanted.text;
  } catch (const CLI::FileError&) {
    throw UsageError("--config: {}: cannot be read; give a text file", app_->get_config_ptr()->as<std::string>());
  } catch (const CLI::ExtrasError&) {
    throw_leftover();
  } catch (const CLI::ArgumentMismatch& error) {
    throw UsageError("{}: a value is missing; see {} --help", first_word(error.what()), path_of_chosen());
  } catch (const CLI::RequiredError& error) {
    if (app_->get_require_subcommand_min() > app_->get_subcommands().size()) {
      if (app_->remaining_size(true) > 0) throw_leftover();
      throw UsageError("a command is missing; see {} --help", info_.name);
    }
    if (app_->remaining_size(true) > 0) throw_leftover();
    throw UsageError("{} is missing; see {} --help", first_word(error.what()), path_of_chosen());
  } catch (const CLI::ExcludesError& error) {
    const std::string text = error.what();
    throw UsageError("{} and {} exclude each other; give one of them", first_word(text),
                     text.substr(text.rfind(' ') + 1));
  } catch (const CLI::ParseError& error) {
    throw UsageError("{}; see {} --help", clause(error.what()), path_of_chosen());
  }
  common_.seed_given = app_->get_option("--seed")->count() > 0;
  if (common_.verbose) common_.quiet = false;
  return std::nullopt;
}

const Command& Parser::chosen() const {
  for (const CLI::App* sub : app_->get_subcommands()) {
    for (const Command& command : root_->commands()) {
      if (&command.app() == sub) return command;
    }
  }
  return *root_;
}

}  // namespace quipu
