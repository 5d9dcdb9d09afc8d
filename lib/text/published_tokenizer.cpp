#include "text/published_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/byte_bpe_tokenizer.h"
#include "text/sentence_tokenizer.h"
#include "text/tokenizer_blobs.h"
#include "text/utf8.h"
#include "text/world_tokenizer.h"

namespace quipu {
namespace {

using Json = nlohmann::ordered_json;
using Files = std::vector<TokenizerFile>;

/// A byte-level model's tokens as they are spelled, by id; empty where there is none. Added tokens stand for
/// themselves.
std::vector<std::string> spelled_tokens(const ByteBpeModel& model) {
  std::vector<std::string> spelled;
  for (const std::string& piece : model.pieces) spelled.push_back(spelling_of_bytes(piece));
  for (const ByteBpeModel::Added& added : model.added) {
    const auto id = static_cast<std::size_t>(added.id);
    spelled[id] = model.pieces[id];
    if (valid_utf8(spelled[id]) != spelled[id].size())
      throw InputError("tokenizer: added token {} is no UTF-8, which tokenizer.json cannot hold; leave it out", id);
  }
  return spelled;
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

/// {"token": id, ..}, written as it comes: there are many.
std::string vocabulary_json(const std::vector<std::string>& spelled) {
  std::string json = "{";
  for (std::size_t id = 0; id < spelled.size(); ++id)
    if (!spelled[id].empty()) json += fmt::format("{}{}:{}", json.size() > 1 ? "," : "", quoted(spelled[id]), id);
  return json + "}";
}

std::string merge_line(const MergeSegmenter::Merge& merge, const std::vector<std::string>& spelled) {
  return fmt::format("{} {}", spelled[static_cast<std::size_t>(merge.left)],
                     spelled[static_cast<std::size_t>(merge.right)]);
}

Json byte_level(bool prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

Json pre_tokenizer_json(const ByteBpeModel& model) {
  std::vector<std::string> patterns = model.patterns;
  const bool usual = !patterns.empty() && patterns.back() == kGpt2Pattern;  // ByteLevel cuts last, and so itself
  if (usual) patterns.pop_back();
  Json parts = Json::array();
  for (const std::string& pattern : patterns)
    parts.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  parts.push_back(byte_level(model.prefix_space, usual));
  if (parts.size() == 1) return parts.front();
  return {{"type", "Sequence"}, {"pretokenizers", parts}};
}

std::string tokenizer_json(const ByteBpeModel& model, const std::vector<std::string>& spelled) {
  Json added = Json::array();
  for (const ByteBpeModel::Added& one : model.added)
    added.push_back({{"id", one.id},
                     {"content", spelled[static_cast<std::size_t>(one.id)]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", one.normalized},
                     {"special", one.special}});
  const Json normalizer = model.form == UnicodeForm::kNone ? Json() : Json{{"type", name_of(model.form)}};
  std::string json = fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":{},"pre_tokenizer":{},)"
      R"("post_processor":null,"decoder":{},"model":{{"type":"BPE","dropout":null,"unk_token":null,)"
      R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,)"
      R"("ignore_merges":{},"vocab":{},"merges":[)",
      added.dump(), normalizer.dump(), pre_tokenizer_json(model).dump(), byte_level(true, true).dump(),
      model.whole_words, vocabulary_json(spelled));
  for (std::size_t i = 0; i < model.merges.size(); ++i)
    (json += i == 0 ? "" : ",") += quoted(merge_line(model.merges[i], spelled));
  return json + "]}}\n";
}

/// Whether GPT-2's pair of files says all: its pattern, and no added token but its own.
bool is_gpt2(const ByteBpeModel& model) {
  constexpr std::string_view kEnd = "<|endoftext|>";
  return model.patterns == std::vector<std::string>{std::string(kGpt2Pattern)} && model.form == UnicodeForm::kNone &&
         !model.whole_words && !model.prefix_space && std::ranges::all_of(model.added, [&](const auto& added) {
           return added.special && model.pieces[static_cast<std::size_t>(added.id)] == kEnd;
         });
}

TokenizerFile config_file(Json json) {
  json["clean_up_tokenization_spaces"] = false;
  return {"tokenizer_config.json", json.dump(2) + "\n"};
}

Files byte_bpe_files(const ByteBpeModel& model) {
  if (std::ranges::any_of(model.added, &ByteBpeModel::Added::trims))
    throw InputError("tokenizer: has tokens that take blanks beside them, which are not written here");
  const std::vector<std::string> spelled = spelled_tokens(model);
  Files files{{"tokenizer.json", tokenizer_json(model, spelled)}};
  Json config{{"tokenizer_class", is_gpt2(model) ? "GPT2Tokenizer" : "PreTrainedTokenizerFast"}};
  if (model.end_of_document)
    for (const char* name : {"bos_token", "eos_token"})
      config[name] = spelled[static_cast<std::size_t>(*model.end_of_document)];
  if (is_gpt2(model)) {
    std::string merges = "#version: 0.2\n";
    for (const MergeSegmenter::Merge& merge : model.merges) merges += merge_line(merge, spelled) + "\n";
    files.push_back({"vocab.json", vocabulary_json(spelled) + "\n"});
    files.push_back({"merges.txt", std::move(merges)});
    config["add_prefix_space"] = false;
  }
  files.push_back(config_file(config));
  return files;
}

/// Fields of a protocol buffer.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string number_field(std::uint64_t field, std::int64_t value) {
  return varint(field << 3) + varint(static_cast<std::uint64_t>(value));
}
std::string text_field(std::uint64_t field, const std::string& text) {
  return varint(field << 3 | 2) + varint(text.size()) + text;
}
std::string real_field(std::uint64_t field, float value) {
  std::string bytes = varint(field << 3 | 5);
  append_u32(bytes, std::bit_cast<std::uint32_t>(value));
  return bytes;
}

/// Id of the first piece of a type (and text, where it is given); -1: none.
std::int64_t find_piece(const SentenceModel& model, SentenceModel::Type type, std::string_view text = {}) {
  const auto found = std::ranges::find_if(
      model.pieces, [&](const auto& piece) { return piece.type == type && (text.empty() || piece.text == text); });
  return found == model.pieces.end() ? -1 : found - model.pieces.begin();
}

std::string sentence_file(const SentenceModel& model) {
  const std::int64_t unknown = find_piece(model, SentenceModel::Type::kUnknown);
  const std::int64_t begin = find_piece(model, SentenceModel::Type::kControl, "<s>"), end = model.end_of_document;
  const std::int64_t pad = find_piece(model, SentenceModel::Type::kControl, "<pad>");
  std::string file;
  for (const SentenceModel::Piece& piece : model.pieces)
    file += text_field(1, text_field(1, piece.text) + real_field(2, piece.score) +
                              number_field(3, static_cast<std::int64_t>(piece.type)));
  std::string trainer = number_field(3, static_cast<std::int64_t>(model.method)) +
                        number_field(4, static_cast<std::int64_t>(model.pieces.size())) +
                        number_field(35, model.byte_fallback);
  const std::pair<std::uint64_t, std::int64_t> ids[] = {{40, unknown}, {41, begin}, {42, end}, {43, pad}};
  for (const auto& [field, id] : ids) trainer += number_field(field, id);
  trainer += text_field(44, model.unknown_text);
  for (const auto& [field, id] : ids)  // what they are called
    if (id >= 0) trainer += text_field(field + 5, model.pieces[static_cast<std::size_t>(id)].text);
  file += text_field(2, trainer);
  return file + text_field(3, text_field(1, model.charsmap.empty() ? "identity" : "user_defined") +
                                  text_field(2, model.charsmap) + number_field(3, model.dummy_prefix) +
                                  number_field(4, model.remove_extra_blanks) + number_field(5, 1));
}

Files sentence_files(const SentenceModel& model) {
  Json config{
      {"tokenizer_class", "LlamaTokenizer"}, {"legacy", true}, {"add_bos_token", false}, {"add_eos_token", false}};
  const std::int64_t unknown = find_piece(model, SentenceModel::Type::kUnknown);
  const std::int64_t begin = find_piece(model, SentenceModel::Type::kControl, "<s>");
  const auto name = [&](const char* key, std::int64_t id) {
    config[key] = id < 0 ? Json() : Json(model.pieces[static_cast<std::size_t>(id)].text);
  };
  name("unk_token", unknown), name("bos_token", begin), name("eos_token", model.end_of_document);
  return {{"tokenizer.model", sentence_file(model)}, config_file(config)};
}

/// A piece as a Python literal: of characters where it is UTF-8, else of bytes.
std::string python_literal(const std::string& piece) {
  const bool text = valid_utf8(piece) == piece.size();
  std::string literal = text ? "" : "b";
  literal += '\'';
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\')
      (literal += '\\') += c;
    else if (byte < 0x20 || byte == 0x7f || (byte > 0x7f && !text))
      literal += fmt::format("\\x{:02x}", byte);
    else
      literal += c;
  }
  literal += '\'';
  return literal;
}

std::string world_vocabulary(const TokenizerData& data) {
  std::string file;
  const std::vector<std::string> pieces = unpack_strings(data, "pieces", "lengths");
  for (std::size_t id = 1; id < pieces.size(); ++id)
    if (!pieces[id].empty()) file += fmt::format("{} {} {}\n", id, python_literal(pieces[id]), pieces[id].size());
  return file;
}

}  // namespace

std::vector<TokenizerFile> published_tokenizer(const TokenizerData& data) {
  if (data.kind == "bytes") {
    ByteBpeModel bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.pieces.emplace_back(1, static_cast<char>(byte));
    return byte_bpe_files(bytes);
  }
  if (data.kind == "byte-bpe") return byte_bpe_files(ByteBpeTokenizer::from_data(data)->model());
  if (data.kind == "sentencepiece") return sentence_files(SentenceTokenizer::from_data(data)->model());
  if (data.kind == "world") return {{"rwkv_vocab_v20230424.txt", world_vocabulary(data)}};
  return {};
}

}  // namespace quipu
