#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"

namespace quipu {

/// Reads a text file as a stream of bytes, plain or gzip (told apart by gzip's first two bytes; several gzip members in
/// a row are one text). `-` is standard input.
///
/// Every error is one InputError line that begins with the file's name: not there, not readable, a directory, empty,
/// gzip data that are cut short or damaged.
class TextReader {
 public:
  explicit TextReader(const std::string& path);
  /// From where `input` stands; it may be shared so that it can be read again.
  explicit TextReader(std::shared_ptr<InputFile> input);
  ~TextReader();
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;

  /// Reads 1 to buffer.size() (not 0) bytes, as soon as there are some; 0 only at the end. A text without any byte
  /// throws.
  std::size_t read(std::span<char> buffer);

  /// The path, or `stdin`.
  const std::string& name() const { return input_->name(); }

 private:
  class Inflater;

  std::size_t read_raw(std::span<char> buffer);

  std::shared_ptr<InputFile> input_;
  bool started_ = false;
  std::uint64_t total_ = 0;
  std::string head_;  // the first bytes, read to see whether they are gzip's
  std::unique_ptr<Inflater> inflater_;
};

/// A whole text in memory; for small ones, such as prompts.
std::string read_text(const std::string& path);

}  // namespace quipu
