#include "train/checkpoint_keeper.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/file_system.h"

namespace quipu {
namespace fs = std::filesystem;

namespace {

constexpr const char* kStep = ".step-";

bool is_regular_or_new(const std::string& path) {
  if (path == "-") return false;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return !fs::exists(status) || fs::is_regular_file(status);
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(const std::string& output, Index keep)
    : output_(output), keep_(keep), is_file_(is_regular_or_new(output)) {
  const bool h5 = output.ends_with(".h5") && output.size() > 3;
  stem_ = h5 ? output.substr(0, output.size() - 3) : output;
  suffix_ = h5 ? ".h5" : "";
  best_ = stem_ + ".best" + suffix_;
}

std::vector<std::string> CheckpointKeeper::kept() const {
  const auto [folder, name] = split_path(stem_);
  const std::string opening = name + kStep;
  std::vector<std::pair<Index, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(opening) || !file.ends_with(suffix_)) continue;
    const std::string digits = file.substr(opening.size(), file.size() - opening.size() - suffix_.size());
    if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) continue;
    found.emplace_back(std::stoll(digits), entry.path().string());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

void CheckpointKeeper::keep_step(Index step) const {
  if (keep_ <= 0 || !is_file_) return;
  const std::string path = fmt::format("{}{}{:06}{}", stem_, kStep, step, suffix_);
  std::error_code error;
  fs::remove(path, error);
  const std::string saved = follow_links(output_);
  fs::create_hard_link(saved, path, error);
  if (error) fs::copy_file(saved, path, fs::copy_options::overwrite_existing, error);
  if (error) throw InputError("{}: {}; the checkpoint of step {} could not be kept", path, error.message(), step);
  const std::vector<std::string> all = kept();
  for (std::size_t i = static_cast<std::size_t>(keep_); i < all.size(); ++i) fs::remove(all[i], error);
}

}  // namespace quipu
