#include "text/sentence_tokenizer.h"

#include <bit>
#include <utility>

#include "base/error.h"
#include "text/tokenizer_blobs.h"
#include "text/utf8.h"
#include "text/utf8_stream.h"

namespace quipu {

namespace {

using Type = SentenceModel::Type;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

std::string text_of(const SentenceModel& model, const SentenceModel::Piece& piece) {
  if (piece.type == Type::kControl) return {};
  if (piece.type == Type::kUnknown) return model.unknown_text;
  if (piece.type == Type::kByte) {
    return std::string(1, static_cast<char>(std::stoi(piece.text.substr(3, 2), nullptr, 16)));
  }
  std::string text = piece.text;
  for (std::size_t at = text.find(kBlankMark); at != text.npos; at = text.find(kBlankMark, at)) {
    text.replace(at, kBlankMark.size(), 1, ' ');
  }
  return text;
}

}  // namespace

SentenceTokenizer::SentenceTokenizer(SentenceModel model)
    : model_(std::move(model)), charsmap_(model_.charsmap), segmenter_(model_) {
  for (const SentenceModel::Piece& piece : model_.pieces) texts_.push_back(text_of(model_, piece));
  if (model_.end_of_document >= 0) require_in_vocabulary(model_.end_of_document);
}

bool SentenceTokenizer::is_control(std::int32_t id) const {
  return model_.pieces[static_cast<std::size_t>(id)].type == Type::kControl;
}

SentenceTokenizer::Chunk SentenceTokenizer::chunk(std::string_view text) const {
  bool undecided = false;
  if (segmenter_.has_user_symbols()) {
    const std::size_t length = segmenter_.user_symbol(text, undecided);
    if (length > 0) return {length, text.substr(0, length), undecided};
  }
  const Charsmap::Rule rule = charsmap_.find(text);
  undecided = undecided || rule.undecided;
  if (rule.length > 0) return {rule.length, rule.replacement, undecided};
  const std::size_t size = utf8_size(text);
  if (size > 0) return {size, text.substr(0, size), undecided};
  undecided = undecided || unfinished_utf8(text.substr(0, 4)) == text.size();
  return {1, model_.byte_fallback ? text.substr(0, 1) : kReplacement, undecided};
}

std::size_t SentenceTokenizer::encode_stretch(std::string_view text, TextPart part, Scratch& scratch,
                                              std::vector<std::int32_t>& tokens) const {
  if (text.empty()) return 0;
  std::string& pending = scratch.normalized;  // what is not encoded yet
  pending.clear();
  if (part.begins && model_.dummy_prefix) pending.assign(1, ' ');
  bool after_blank = part.begins && model_.remove_extra_blanks;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Chunk next = chunk(text.substr(at));
    if (next.undecided && !part.ends) break;
    std::string_view added = next.text;
    while (after_blank && added.starts_with(' ')) added.remove_prefix(1);
    if (added.empty()) {
      if (next.text == " " && pending == " ") done = at;  // of several blanks the last one is enough
    } else {
      const bool mark = added.starts_with(kBlankMark);
      const bool split_blank = model_.remove_extra_blanks && !pending.empty() && pending.back() == ' ';
      if (at > 0 && !pending.empty() && !split_blank && segmenter_.may_cut(pending.back(), mark ? " " : added)) {
        encode_normalized(pending, scratch, tokens);
        pending.clear();
        done = at;
      }
      after_blank = model_.remove_extra_blanks && added.ends_with(' ');
      for (std::size_t i = 0; i < added.size();) {
        const bool is_mark = added.substr(i).starts_with(kBlankMark);
        pending += is_mark ? ' ' : added[i];
        i += is_mark ? kBlankMark.size() : 1;
      }
    }
    at += next.length;
  }
  if (!part.ends) return done;
  while (model_.remove_extra_blanks && pending.ends_with(' ')) pending.pop_back();
  encode_normalized(pending, scratch, tokens);
  return text.size();
}

void SentenceTokenizer::encode_normalized(std::string_view text, Scratch& scratch,
                                          std::vector<std::int32_t>& tokens) const {
  if (text.empty()) return;
  scratch.words.append(
      text, tokens, [this](std::string_view word, std::vector<std::int32_t>& made) { segmenter_.segment(word, made); });
}

std::size_t SentenceTokenizer::encode_some(std::string_view text, TextPart part,
                                           std::vector<std::int32_t>& tokens) const {
  const auto scratch = scratches_.borrow();
  for (std::size_t at = 0;;) {
    const TokenMatcher::Found found = special_.find(text, at, !part.ends);
    const bool is_token = found.kind == TokenMatcher::Found::Kind::kToken;
    const std::size_t end = found.kind == TokenMatcher::Found::Kind::kNone ? text.size() : found.begin;
    const TextPart stretch{part.begins && at == 0, part.ends || is_token};
    const std::size_t done = at + encode_stretch(text.substr(at, end - at), stretch, *scratch, tokens);
    if (!is_token) return done;
    tokens.push_back(found.id);
    at = found.end;
  }
}

std::size_t SentenceTokenizer::cut_after(std::string_view text, std::size_t from) const {
  for (std::size_t at = text.find(' ', from); at != text.npos; at = text.find(' ', at + 1)) {
    const char before = text[at - 1];
    const bool letter = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z');
    if (!letter || !charsmap_.keeps_before_blank(before) || !segmenter_.may_cut(before, " ")) continue;
    if (special_.joins(before, ' ') || segmenter_.joins_symbol(before, ' ')) continue;
    const Chunk next = chunk(text.substr(at));
    if (!next.undecided && next.text.starts_with(' ')) return at;
  }
  return text.size();
}

std::string_view SentenceTokenizer::token_bytes(std::int32_t id) const {
  require_in_vocabulary(id);
  return texts_[static_cast<std::size_t>(id)];
}

void SentenceTokenizer::append_text(std::int32_t previous, std::int32_t id, std::string& text) const {
  std::string_view bytes = token_bytes(id);
  const bool begins = previous < 0 || is_control(previous);
  if (begins && model_.dummy_prefix && bytes.starts_with(' ')) bytes.remove_prefix(1);
  text += bytes;
}

std::optional<std::int32_t> SentenceTokenizer::end_of_document() const {
  if (model_.end_of_document < 0) return std::nullopt;
  return model_.end_of_document;
}

void SentenceTokenizer::use_special_tokens() {
  std::vector<TokenMatcher::Token> tokens;
  for (std::size_t id = 0; id < model_.pieces.size(); ++id) {
    const SentenceModel::Piece& piece = model_.pieces[id];
    if (piece.type == Type::kControl) tokens.push_back({piece.text, static_cast<std::int32_t>(id)});
  }
  if (tokens.empty()) return Tokenizer::use_special_tokens();
  special_ = TokenMatcher(tokens);
}

TokenizerData SentenceTokenizer::serialize() const {
  TokenizerData data{std::string(kind()), {}};
  std::vector<std::string> texts;
  std::string scores, types;
  for (const SentenceModel::Piece& piece : model_.pieces) {
    texts.push_back(piece.text);
    append_u32(scores, std::bit_cast<std::uint32_t>(piece.score));
    append_u32(types, static_cast<std::uint32_t>(piece.type));
  }
  pack_strings(texts, "pieces", "lengths", data);
  std::string settings;
  append_u32(settings, static_cast<std::uint32_t>(model_.method));
  append_u32(settings, model_.byte_fallback ? 1 : 0);
  append_u32(settings, model_.dummy_prefix ? 1 : 0);
  append_u32(settings, model_.remove_extra_blanks ? 1 : 0);
  append_u32(settings, static_cast<std::uint32_t>(model_.end_of_document));
  data.blobs.push_back({"scores", std::move(scores)});
  data.blobs.push_back({"types", std::move(types)});
  data.blobs.push_back({"charsmap", model_.charsmap});
  data.blobs.push_back({"unknown_text", model_.unknown_text});
  data.blobs.push_back({"settings", std::move(settings)});
  return data;
}

std::unique_ptr<SentenceTokenizer> SentenceTokenizer::from_data(const TokenizerData& data) {
  SentenceModel model;
  const std::vector<std::string> texts = unpack_strings(data, "pieces", "lengths");
  const std::vector<std::uint32_t> scores = read_numbers(data, "scores", 1), types = read_numbers(data, "types", 1);
  if (scores.size() != texts.size() || types.size() != texts.size()) {
    throw InputError("tokenizer: has {} scores and {} types for {} pieces; make it again", scores.size(), types.size(),
                     texts.size());
  }
  for (std::size_t id = 0; id < texts.size(); ++id) {
    if (types[id] < 1 || types[id] > 6)
      throw InputError("tokenizer: piece {} has type {}; make it again", id, types[id]);
    model.pieces.push_back({texts[id], std::bit_cast<float>(scores[id]), static_cast<Type>(types[id])});
  }
  model.charsmap = find_blob(data, "charsmap");
  model.unknown_text = find_blob(data, "unknown_text");
  const std::vector<std::uint32_t> settings = read_numbers(data, "settings", 5);
  if (settings.size() != 5 || settings[0] < 1 || settings[0] > 2) {
    throw InputError("tokenizer: sentencepiece: {} settings, or an unknown method; make the file again",
                     settings.size());
  }
  model.method = static_cast<SentenceModel::Method>(settings[0]);
  model.byte_fallback = settings[1] != 0;
  model.dummy_prefix = settings[2] != 0;
  model.remove_extra_blanks = settings[3] != 0;
  model.end_of_document = static_cast<std::int32_t>(settings[4]);
  return std::make_unique<SentenceTokenizer>(std::move(model));
}

}  // namespace quipu
