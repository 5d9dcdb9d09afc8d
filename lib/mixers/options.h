#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/real.h"

namespace quipu {

/// The options of one mixer or channel mixer, `--set KEY=VALUE`. Reading one declares it: the name, the default and
/// what it means stand once, where the constructor reads it. `described` lists all that were read, with the values in
/// force; `require_all_known` throws UsageError for a key that nobody read.
class Options {
 public:
  struct Described {
    std::string key, value, help;
    bool is_default;
  };

  Options() = default;
  explicit Options(std::map<std::string, std::string> given) : given_(std::move(given)) {}

  /// Throws UsageError where the value is no number or below `minimum`.
  Index integer(const std::string& key, Index standard, Index minimum, const std::string& help);
  double real(const std::string& key, double standard, const std::string& help);
  bool flag(const std::string& key, bool standard, const std::string& help);
  /// One of `choices`.
  std::string choice(const std::string& key, const std::string& standard, const std::vector<std::string>& choices,
                     const std::string& help);
  /// A published default that had to give way to a smaller model; `train` says so.
  void note(std::string text) { notes_.push_back(std::move(text)); }

  const std::vector<Described>& described() const { return described_; }
  const std::vector<std::string>& notes() const { return notes_; }
  /// The values in force, for the configuration of a checkpoint.
  std::map<std::string, std::string> resolved() const;
  void require_all_known(const std::string& mixer) const;

 private:
  std::string read(const std::string& key, const std::string& standard, const std::string& help);

  std::map<std::string, std::string> given_;
  std::vector<Described> described_;
  std::vector<std::string> notes_;
};

}  // namespace quipu
