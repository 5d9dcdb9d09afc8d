#include "mixers/options.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace quipu {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

template <typename T>
T parse(const std::string& key, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw UsageError("--set {}={}: is not a number", key, text);
  return value;
}

}  // namespace

std::string Options::read(const std::string& key, const std::string& standard, const std::string& help) {
  const auto found = given_.find(key);
  const std::string value = found == given_.end() ? standard : found->second;
  described_.push_back({key, value, help, found == given_.end()});
  return value;
}

Index Options::integer(const std::string& key, Index standard, Index minimum, const std::string& help) {
  const auto value = parse<Index>(key, read(key, std::to_string(standard), help));
  if (value < minimum) throw UsageError("--set {}={}: is below {}", key, value, minimum);
  return value;
}

double Options::real(const std::string& key, double standard, const std::string& help) {
  return parse<double>(key, read(key, fmt::format("{}", standard), help));
}

bool Options::flag(const std::string& key, bool standard, const std::string& help) {
  return choice(key, standard ? "true" : "false", {"true", "false"}, help) == "true";
}

std::string Options::choice(const std::string& key, const std::string& standard,
                            const std::vector<std::string>& choices, const std::string& help) {
  const std::string value = read(key, standard, help + " (" + joined(choices) + ")");
  if (std::find(choices.begin(), choices.end(), value) == choices.end())
    throw UsageError("--set {}={}: is none of {}", key, value, joined(choices));
  return value;
}

std::map<std::string, std::string> Options::resolved() const {
  std::map<std::string, std::string> values;
  for (const Described& option : described_) values[option.key] = option.value;
  return values;
}

void Options::require_all_known(const std::string& mixer) const {
  std::vector<std::string> known;
  for (const Described& option : described_) known.push_back(option.key);
  for (const auto& [key, value] : given_)
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw UsageError("--set {}={}: {} has no such option; it has {}", key, value, mixer,
                       known.empty() ? "none" : joined(known));
}

}  // namespace quipu
