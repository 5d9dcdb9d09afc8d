#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/sentence_model.h"

namespace quipu {

/// Small files as other programs write them, made here.

inline std::string quoted_json(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

/// A GPT-2 vocabulary: the bytes in order, then one token a merge. `merges`: spelled pairs.
struct SmallBpe {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;

  explicit SmallBpe(std::vector<std::string> pairs) : merges(std::move(pairs)) {
    for (int byte = 0; byte < 256; ++byte) tokens.push_back(spelling_of_bytes(std::string(1, static_cast<char>(byte))));
    for (const std::string& pair : merges) {
      const std::size_t blank = pair.find(' ');
      tokens.push_back(pair.substr(0, blank) + pair.substr(blank + 1));
    }
  }

  std::string vocab_json() const {
    std::string json = "{";
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      json += (id == 0 ? "" : ", ") + quoted_json(tokens[id]) + ": " + std::to_string(id);
    }
    return json + "}";
  }

  std::string merges_txt() const {
    std::string text = "#version: 0.2\n";
    for (const std::string& merge : merges) text += merge + "\n";
    return text;
  }

  /// `parts`: more members of the outermost object, each with a comma behind it.
  std::string tokenizer_json(const std::string& parts, const std::string& model_parts = "") const {
    std::string list;
    for (const std::string& merge : merges) list += (list.empty() ? "" : ", ") + quoted_json(merge);
    return "{" + parts + R"("model": {"type": "BPE", )" + model_parts + R"("vocab": )" + vocab_json() +
           R"(, "merges": [)" + list + "]}}";
  }
};

inline SmallBpe small_bpe() {
  return SmallBpe({"\u0120 t", "h e", "\u0120t he", "i n", "a n", "an d", "e r", "\u0120 \u0120", "1 2", "r e"});
}

inline const char* const kByteLevel =
    R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}, )";

/// Fields of a protocol buffer.
inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string field(std::uint64_t number, std::uint64_t value) { return varint(number << 3) + varint(value); }
inline std::string field(std::uint64_t number, std::string_view text) {
  return varint(number << 3 | 2) + varint(text.size()) + std::string(text);
}
inline std::string field(std::uint64_t number, float value) {
  return varint(number << 3 | 5) + std::string(reinterpret_cast<const char*>(&value), 4);
}

inline std::string sentence_piece(std::string_view text, float score, std::uint64_t type = 1) {
  return field(1, field(1, text) + field(2, score) + field(3, type));
}

/// A SentencePiece model as it stands in a file. Pieces: unknown, <s>, </s>, the bytes where asked for, and the given.
inline std::string sentence_file(std::uint64_t method, bool bytes, bool remove_extra,
                                 const std::vector<std::pair<std::string, float>>& pieces) {
  std::string file = sentence_piece("<unk>", 0, 2) + sentence_piece("<s>", 0, 3) + sentence_piece("</s>", 0, 3);
  for (int byte = 0; bytes && byte < 256; ++byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    const std::string text = std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">";
    file += sentence_piece(text, 0, 6);
  }
  for (const auto& [text, score] : pieces) file += sentence_piece(text, score);
  file += field(2, field(3, method) + field(35, std::uint64_t{bytes}));
  return file + field(3, field(3, std::uint64_t{1}) + field(4, std::uint64_t{remove_extra}));
}

inline std::vector<std::pair<std::string, float>> sentence_pieces() {
  std::vector<std::pair<std::string, float>> pieces = {
      {"\u2581t", -1},      {"he", -2},       {"\u2581the", -3}, {"in", -4},  {"an", -5},   {"\u2581a", -6},
      {"and", -7},          {"\u2581an", -8}, {"\u2581", -9},    {"er", -10}, {"kin", -11}, {"\u65e5\u672c", -12},
      {"\u2581\u2581", -13}};
  for (const char c : std::string_view("abcdefghiknortu,.")) pieces.emplace_back(std::string(1, c), -20.0F);
  return pieces;
}

}  // namespace quipu
