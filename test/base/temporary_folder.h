#pragma once
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace quipu_test {

/// A folder of its own for a test, removed with all in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string text = (std::filesystem::temp_directory_path() / "quipu_test.XXXXXX").string();
    if (::mkdtemp(text.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = text;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  /// How many entries the folder has.
  long entries() const { return std::distance(std::filesystem::directory_iterator(path_), {}); }

 private:
  std::string path_;
};

inline std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_whole(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Whether the slow tests were asked for.
inline bool wants_slow_tests() { return std::getenv("QUIPU_SLOW") != nullptr; }

}  // namespace quipu_test
