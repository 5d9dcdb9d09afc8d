#include "text/tokenizer_file.h"

#include <array>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "text/byte_bpe_files.h"
#include "text/sentence_tokenizer.h"
#include "text/world_tokenizer.h"

namespace quipu {

namespace {

namespace fs = std::filesystem;

constexpr std::array kUsualNames = {"tokenizer.json", "vocab.json", "tokenizer.model", "tokenizer.bin"};
constexpr std::string_view kWorldBeginning = "rwkv_vocab";

std::string read_file(const fs::path& path) { return InputFile(path.string()).read_all(); }

/// Calls read() and puts the file's name before what it throws.
template <typename Read>
auto named(const fs::path& path, Read&& read) {
  try {
    return read();
  } catch (const InputError& error) {
    const std::string_view what = error.what();
    constexpr std::string_view kGeneral = "tokenizer: ";
    throw InputError("{}: {}", path.string(), what.starts_with(kGeneral) ? what.substr(kGeneral.size()) : what);
  }
}

bool is_merges(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.starts_with("#version") || (line.find(' ') != line.npos && line.find(' ') == line.rfind(' ') &&
                                          (line[0] < '0' || line[0] > '9') && line.size() < 200);
}

bool is_world(std::string_view text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == text.npos || text[digits] != ' ') return false;
  std::string_view literal = text.substr(digits + 1);
  if (literal.starts_with('b')) literal.remove_prefix(1);
  return literal.starts_with('\'') || literal.starts_with('"');
}

fs::path beside(const fs::path& path, const char* name) {
  const fs::path other = path.parent_path() / name;
  std::error_code ignored;
  if (fs::exists(other, ignored)) return other;
  throw InputError("{}: needs {} beside it, which is not there; put it there", path.string(), name);
}

std::unique_ptr<Tokenizer> read_gpt2(const fs::path& shown, const std::string& vocab, const std::string& merges) {
  return named(shown, [&] { return std::make_unique<ByteBpeTokenizer>(read_gpt2_files(vocab, merges)); });
}

bool has_model(std::string_view json) {
  return json.find("\"model\"") != json.npos && json.find("\"merges\"") != json.npos;
}

fs::path file_of_folder(const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : kUsualNames) {
    if (fs::exists(folder / name, ignored)) return folder / name;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(kWorldBeginning)) return entry.path();
  }
  throw InputError(
      "{}: is a folder without tokenizer.json, vocab.json, tokenizer.model, tokenizer.bin or rwkv_vocab*; "
      "name the tokenizer's file",
      folder.string());
}

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_file(const std::string& path) {
  constexpr std::string_view kPrefix = "gpt2:";
  fs::path file = path.starts_with(kPrefix) ? path.substr(kPrefix.size()) : path;
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) file = file_of_folder(file);
  const std::string text = read_file(file);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) throw InputError("{}: is empty; give a tokenizer's file", file.string());
  if (text[first] == '{' && !has_model(text)) return read_gpt2(file, text, read_file(beside(file, "merges.txt")));
  if (text[first] == '{') {
    return named(file, [&] { return std::make_unique<ByteBpeTokenizer>(read_tokenizer_json(text)); });
  }
  if (is_world(text)) {
    return named(file, [&] { return std::make_unique<WorldTokenizer>(read_world_vocabulary(text)); });
  }
  if (is_llama2c_tokenizer(text)) {
    return named(file, [&] { return std::make_unique<SentenceTokenizer>(read_llama2c_tokenizer(text)); });
  }
  if (text[0] == '\n') {  // a protocol buffer whose first field is a message
    return named(file, [&] { return std::make_unique<SentenceTokenizer>(read_sentence_model(text)); });
  }
  if (is_merges(text)) return read_gpt2(file, read_file(beside(file, "vocab.json")), text);
  throw InputError(
      "{}: is no tokenizer that is known here (GPT-2's or Hugging Face's JSON, RWKV's World vocabulary, a "
      "SentencePiece model, llama2.c's tokenizer.bin); check the name",
      file.string());
}

}  // namespace quipu
