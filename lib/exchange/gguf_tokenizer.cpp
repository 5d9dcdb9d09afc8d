#include "exchange/gguf_tokenizer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "store/byte_cursor.h"
#include "text/byte_bpe_files.h"
#include "text/sentence_tokenizer.h"
#include "text/world_tokenizer.h"

namespace quipu {
namespace {

/// llama.cpp's kinds of tokens.
enum class TokenType { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// What llama.cpp calls ways of cutting text into words.
struct Cut {
  std::string_view name;
  std::string patterns[2];
  bool whole_words;
};

const std::array<Cut, 11>& cuts() {
  static const std::string words(kGpt2Pattern), digits = R"(\p{N})";
  static const std::array<Cut, 11> known{{{"gpt-2", {words}, false},
                                          {"gpt2", {words}, false},
                                          {"phi-2", {words}, false},
                                          {"mpt", {words}, false},
                                          {"olmo", {words}, false},
                                          {"starcoder", {digits, words}, false},
                                          {"refact", {digits, words}, false},
                                          {"smollm", {digits, words}, false},
                                          {"llama3", {kLlama3Pattern}, true},
                                          {"llama-v3", {kLlama3Pattern}, true},
                                          {"llama-bpe", {kLlama3Pattern}, true}}};
  return known;
}

/// The metadata under "tokenizer.ggml.".
class Metadata {
 public:
  explicit Metadata(const SourceMetadata& metadata) : metadata_(metadata) {}

  const std::string* text(const char* name) const { return find<std::string>(name); }
  bool flag(const char* name, bool absent) const {
    const bool* const found = find<bool>(name);
    return found == nullptr ? absent : *found;
  }
  std::int64_t number(const char* name, std::int64_t absent) const {
    const std::int64_t* const found = find<std::int64_t>(name);
    return found == nullptr ? absent : *found;
  }
  const MetadataArray& list(const char* name) const {
    if (const MetadataArray* const found = find<MetadataArray>(name)) return *found;
    throw InputError("has no list {}", key(name));
  }

  std::vector<std::string> tokens() const { return list("tokens").strings(); }
  /// All normal where the file has no list of them.
  std::vector<TokenType> types(std::size_t tokens) const {
    std::vector<TokenType> types(tokens, TokenType::kNormal);
    const MetadataArray* const found = find<MetadataArray>("token_type");
    if (found == nullptr) return types;
    const std::vector<double> numbers = found->numbers();
    if (numbers.size() != tokens) throw InputError("has {} tokens, and {} types of them", tokens, numbers.size());
    for (std::size_t id = 0; id < tokens; ++id) {
      if (!(numbers[id] >= 1 && numbers[id] <= 6))
        throw InputError("token {} has the type {}, outside 1 to 6", id, numbers[id]);
      types[id] = static_cast<TokenType>(numbers[id]);
    }
    return types;
  }

 private:
  static std::string key(const char* name) { return std::string("tokenizer.ggml.") + name; }
  template <typename T>
  const T* find(const char* name) const {
    const MetadataValue* const value = metadata_.find(key(name));
    return value == nullptr ? nullptr : std::get_if<T>(value);
  }

  const SourceMetadata& metadata_;
};

std::unique_ptr<Tokenizer> byte_bpe(const Metadata& metadata) {
  const std::string* const name = metadata.text("pre");
  const auto cut = std::ranges::find(cuts(), name == nullptr ? "" : std::string_view(*name), &Cut::name);
  if (cut == cuts().end())
    throw InputError("its pre-tokenizer {} is not known here", name == nullptr ? "has no name and" : shown_name(*name));
  const std::vector<std::string> tokens = metadata.tokens();
  const std::vector<TokenType> types = metadata.types(tokens.size());
  std::vector<ListedToken> kinds;
  for (const TokenType type : types)
    kinds.push_back(type == TokenType::kUnused                                   ? ListedToken::kNone
                    : type == TokenType::kControl || type == TokenType::kUnknown ? ListedToken::kSpecial
                    : type == TokenType::kUserDefined                            ? ListedToken::kLiteral
                                                                                 : ListedToken::kText);
  ByteBpeModel model = make_byte_bpe(tokens, kinds, metadata.list("merges").strings());
  for (const std::string& pattern : cut->patterns)
    if (!pattern.empty()) model.patterns.push_back(pattern);
  model.whole_words = cut->whole_words;
  const std::int64_t end = metadata.number("eos_token_id", -1);
  if (std::ranges::any_of(model.added, [&](const auto& added) { return added.special && added.id == end; }))
    model.end_of_document = static_cast<std::int32_t>(end);
  return std::make_unique<ByteBpeTokenizer>(std::move(model));
}

std::unique_ptr<Tokenizer> sentencepiece(const Metadata& metadata) {
  const std::vector<std::string> tokens = metadata.tokens();
  const std::vector<TokenType> types = metadata.types(tokens.size());
  const std::vector<double> scores = metadata.list("scores").numbers();
  if (scores.size() != tokens.size()) throw InputError("has {} tokens, and {} scores", tokens.size(), scores.size());
  SentenceModel model;
  model.method = SentenceModel::Method::kBpe;
  model.dummy_prefix = metadata.flag("add_space_prefix", true);
  model.remove_extra_blanks = metadata.flag("remove_extra_whitespaces", false);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    model.pieces.push_back({tokens[id], static_cast<float>(scores[id]), static_cast<SentenceModel::Type>(types[id])});
    model.byte_fallback = model.byte_fallback || types[id] == TokenType::kByte;
  }
  const std::int64_t end = metadata.number("eos_token_id", -1);
  if (end >= 0 && end < static_cast<std::int64_t>(types.size()) &&
      types[static_cast<std::size_t>(end)] == TokenType::kControl)
    model.end_of_document = static_cast<std::int32_t>(end);
  return std::make_unique<SentenceTokenizer>(std::move(model));
}

/// The bytes of what Python prints of them, without quotes.
std::string unescaped(const std::string& text, std::size_t id) {
  constexpr std::string_view kNames = "tnr\\'\"", kValues = "\t\n\r\\'\"";
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
      continue;
    }
    const char kind = ++i < text.size() ? text[i] : '\0';
    const std::string digits = kind == 'x' ? text.substr(i + 1, 2) : "";
    if (const std::size_t found = kNames.find(kind); kind != '\0' && found != kNames.npos) {
      bytes += kValues[found];
    } else if (digits.size() == 2 && digits.find_first_not_of("0123456789abcdefABCDEF") == digits.npos) {
      bytes += static_cast<char>(std::stoi(digits, nullptr, 16));
      i += 2;
    } else {
      throw InputError("token {} ('{}') has an escape that is not known", id, shown_name(text));
    }
  }
  return bytes;
}

std::unique_ptr<Tokenizer> world(const Metadata& metadata) {
  const std::vector<std::string> tokens = metadata.tokens();
  const std::vector<TokenType> types = metadata.types(tokens.size());
  std::vector<std::string> pieces;
  for (std::size_t id = 0; id < tokens.size(); ++id)
    pieces.push_back(types[id] == TokenType::kNormal && id > 0 ? unescaped(tokens[id], id) : "");
  while (!pieces.empty() && pieces.back().empty()) pieces.pop_back();
  return std::make_unique<WorldTokenizer>(std::move(pieces));
}

}  // namespace

std::unique_ptr<Tokenizer> read_gguf_tokenizer(const TensorSource& source) {
  const Metadata metadata(source.metadata());
  const std::string* const kind = metadata.text("model");
  if (kind == nullptr || *kind == "none" || *kind == "no_vocab") return nullptr;
  try {
    if (*kind == "gpt2") return byte_bpe(metadata);
    if (*kind == "llama") return sentencepiece(metadata);
    if (*kind == "rwkv") return world(metadata);
    throw InputError("is of the kind {}, which is not known here", shown_name(*kind));
  } catch (const InputError& error) {
    throw InputError("{}: its tokenizer: {}; give the model's own with --tokenizer", source.name(), error.what());
  }
}

}  // namespace quipu
