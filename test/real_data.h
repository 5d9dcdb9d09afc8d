#pragma once
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace quipu_test {

/// A file among the real data that stands beside the checkout (or in $QUIPU_REAL_DATA); none where it is absent.
inline std::optional<std::string> real_file(const std::string& name) {
  const char* folder = std::getenv("QUIPU_REAL_DATA");
  const std::string path = (folder != nullptr ? folder : QUIPU_SOURCE_DIR "/../shared/real") + ("/" + name);
  if (std::filesystem::exists(path)) return path;
  return std::nullopt;
}

}  // namespace quipu_test
