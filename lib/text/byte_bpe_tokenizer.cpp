#include "text/byte_bpe_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/escape.h"
#include "text/tokenizer_blobs.h"
#include "text/utf8.h"
#include "text/utf8_stream.h"

namespace quipu {

namespace {

constexpr std::uint32_t kSpecial = 1, kNormalized = 2, kMerged = 4, kTrims = 8;

void check_id(const ByteBpeModel& model, std::int64_t id, const char* what) {
  const auto size = static_cast<std::int64_t>(model.pieces.size());
  if (id >= 0 && id < size && !model.pieces[static_cast<std::size_t>(id)].empty()) return;
  throw InputError("tokenizer: {} has token id {}, which is none of the vocabulary (size {}); repair the file", what,
                   id, size);
}

[[noreturn]] void refuse_trims(const ByteBpeModel& model, const ByteBpeModel::Added& added) {
  throw InputError("tokenizer: added token {} ('{}') is a single_word, lstrip or rstrip one, which is not read here",
                   added.id, escape_text(model.pieces[static_cast<std::size_t>(added.id)]));
}

void check_added(const ByteBpeModel& model) {
  std::vector<bool> seen(model.pieces.size());
  for (const ByteBpeModel::Added& added : model.added) {
    check_id(model, added.id, "an added token");
    if (seen[static_cast<std::size_t>(added.id)]) {
      throw InputError("tokenizer: added token {} is there twice; list it once", added.id);
    }
    seen[static_cast<std::size_t>(added.id)] = true;
    if (added.trims && !added.special) refuse_trims(model, added);
  }
  if (model.prefix_space && std::ranges::any_of(model.added, [](const auto& added) { return !added.special; })) {
    throw InputError(
        "tokenizer: both adds a blank before text and has added tokens that are not special, which cannot "
        "be read; choose another tokenizer");
  }
}

std::vector<MergeSegmenter::Merge> checked_merges(const ByteBpeModel& model) {
  const auto piece = [&](std::int32_t id) -> const std::string& {
    check_id(model, id, "a merge");
    return model.pieces[static_cast<std::size_t>(id)];
  };
  for (std::size_t i = 0; i < model.merges.size(); ++i) {
    const MergeSegmenter::Merge& merge = model.merges[i];
    if (piece(merge.left) + piece(merge.right) == piece(merge.joined)) continue;
    throw InputError("tokenizer: merge {} makes '{}' of '{}' and '{}'; repair the file", i,
                     escape_text(piece(merge.joined)), escape_text(piece(merge.left)), escape_text(piece(merge.right)));
  }
  return model.merges;
}

/// Whether the model's merges can make each piece (and not only an added token's text).
std::vector<bool> merged_pieces(const ByteBpeModel& model) {
  std::vector<bool> merged(model.pieces.size(), true);
  for (const ByteBpeModel::Added& added : model.added) {
    if (!added.merged) merged[static_cast<std::size_t>(added.id)] = false;
  }
  return merged;
}

std::array<std::int32_t, 256> byte_ids(const ByteBpeModel& model) {
  check_added(model);
  if (model.end_of_document) check_id(model, *model.end_of_document, "the end of a document");
  const std::vector<bool> merged = merged_pieces(model);
  std::array<std::int32_t, 256> ids;
  ids.fill(-1);
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].size() != 1 || !merged[id]) continue;
    std::int32_t& here = ids[static_cast<unsigned char>(model.pieces[id][0])];
    if (here >= 0) throw InputError("tokenizer: tokens {} and {} are the same byte; give each once", here, id);
    here = static_cast<std::int32_t>(id);
  }
  for (std::size_t byte = 0; byte < ids.size(); ++byte) {
    const bool in_utf8 = byte < 0xC0 || (byte > 0xC1 && byte < 0xF5);  // GPT-NeoX's has none of the others
    if (ids[byte] < 0 && in_utf8)
      throw InputError("tokenizer: has no token for byte {} of the 256; it is no byte-level vocabulary", byte);
  }
  return ids;
}

}  // namespace

/// One call of encode_some, in the order in which text goes through it: well-formed stretches, tokens that stand in it
/// literally, the normalization form, tokens that stand in that, words. Each takes a stretch of text that is `open`,
/// where it may go on, and returns how far it came.
class ByteBpeTokenizer::Run {
 public:
  Run(const ByteBpeTokenizer& owner, Scratch& scratch, std::vector<std::int32_t>& tokens)
      : owner_(owner), scratch_(scratch), tokens_(tokens) {}

  std::size_t all(std::string_view text, bool open) {
    const std::size_t unfinished = open ? unfinished_utf8(text) : 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = at + valid_utf8(text.substr(at));
      const bool goes_on = open && end + unfinished == text.size();
      const std::size_t done = at + literal(text.substr(at, end - at), goes_on);
      if (goes_on) return done;
      if (end == text.size()) return end;
      stray(static_cast<unsigned char>(text[end]));
      at = end + 1;
    }
    return text.size();
  }

 private:
  /// A byte that is no UTF-8: its own token, or the replacement character where the vocabulary has none for it.
  void stray(unsigned char byte) {
    const std::int32_t id = owner_.bytes_[byte];
    if (id < 0)
      literal("\xef\xbf\xbd", false);
    else
      tokens_.push_back(id);
  }

  std::size_t literal(std::string_view text, bool open) {
    for (std::size_t at = 0; at < text.size();) {
      const TokenMatcher::Found found = owner_.raw_tokens_.find(text, at, open);
      const bool is_token = found.kind == TokenMatcher::Found::Kind::kToken;
      const std::size_t end = found.kind == TokenMatcher::Found::Kind::kNone ? text.size() : found.begin;
      const std::size_t done = at + normalized(text.substr(at, end - at), open && !is_token);
      if (!is_token) return done;
      tokens_.push_back(found.id);
      at = found.end;
    }
    return text.size();
  }

  std::size_t normalized(std::string_view text, bool open) {
    if (owner_.model_.form == UnicodeForm::kNone) return words(text, open, [](std::size_t) {});
    NormalizedText form(text, owner_.model_.form, open);
    std::size_t done = 0, made = tokens_.size();
    const std::size_t end = words(form.text(), open, [&](std::size_t place) {
      const auto original = form.original_place(place);
      if (!original) return;
      done = *original;
      made = tokens_.size();
    });
    if (!open) return text.size();
    if (end == 0 || tokens_.size() == made) return done;
    tokens_.resize(made);
    return done;
  }

  /// mark(place) is called, of an open text, where text may begin anew.
  template <typename Mark>
  std::size_t words(std::string_view text, bool open, Mark&& mark) {
    const auto word = [this](std::string_view found) {
      scratch_.words.append(found, tokens_, [this](std::string_view one, std::vector<std::int32_t>& tokens) {
        owner_.segment(one, tokens);
      });
    };
    for (std::size_t at = 0; at < text.size();) {
      const TokenMatcher::Found found = owner_.normalized_tokens_.find(text, at, open);
      const bool is_token = found.kind == TokenMatcher::Found::Kind::kToken;
      const std::size_t end = found.kind == TokenMatcher::Found::Kind::kNone ? text.size() : found.begin;
      const std::size_t done =
          at + owner_.pre_tokenizer_.cut(text.substr(at, end - at), open && !is_token, scratch_.patterns, word,
                                         [&](std::size_t place) { mark(at + place); });
      if (!is_token) return done;
      tokens_.push_back(found.id);
      at = found.end;
      if (open) mark(at);
    }
    return text.size();
  }

  const ByteBpeTokenizer& owner_;
  Scratch& scratch_;
  std::vector<std::int32_t>& tokens_;
};

ByteBpeTokenizer::ByteBpeTokenizer(ByteBpeModel model)
    : model_(std::move(model)),
      bytes_(byte_ids(model_)),
      segmenter_(bytes_, checked_merges(model_)),
      pre_tokenizer_(model_.patterns),
      raw_tokens_(matcher(false, false)),
      normalized_tokens_(matcher(true, false)) {
  model_.merges.clear();  // the segmenter has them
  model_.merges.shrink_to_fit();
  if (!model_.whole_words) return;
  const std::vector<bool> merged = merged_pieces(model_);
  std::size_t bytes = 0;
  for (const std::string& piece : model_.pieces) bytes += piece.size();
  words_ = PieceTree(bytes);
  for (std::size_t id = 0; id < model_.pieces.size(); ++id) {
    if (model_.pieces[id].empty() || !merged[id]) continue;
    if (words_.insert(model_.pieces[id], static_cast<std::int32_t>(id))) continue;
    throw InputError("tokenizer: token {}: '{}' is there twice; give each token once", id,
                     escape_text(model_.pieces[id]));
  }
}

TokenMatcher ByteBpeTokenizer::matcher(bool normalized, bool special) const {
  std::vector<TokenMatcher::Token> tokens;
  std::vector<std::string> forms;  // what normalized text has of them
  forms.reserve(model_.added.size());
  for (const ByteBpeModel::Added& added : model_.added) {
    const bool after_form = added.normalized && !added.special;
    if (after_form != normalized || (added.special && !special)) continue;
    const std::string& piece = model_.pieces[static_cast<std::size_t>(added.id)];
    const bool has_form = after_form && valid_utf8(piece) == piece.size();
    forms.emplace_back(has_form ? NormalizedText(piece, model_.form, false).text() : std::string_view(piece));
    tokens.push_back({forms.back(), added.id});
  }
  return TokenMatcher(tokens);
}

void ByteBpeTokenizer::use_special_tokens() {
  if (std::ranges::none_of(model_.added, &ByteBpeModel::Added::special)) return Tokenizer::use_special_tokens();
  if (model_.prefix_space) {
    throw UsageError("--special-tokens: the tokenizer adds a blank before text, so that these cannot be read as well");
  }
  for (const ByteBpeModel::Added& added : model_.added) {
    if (added.trims) refuse_trims(model_, added);
  }
  raw_tokens_ = matcher(false, true);
}

void ByteBpeTokenizer::segment(std::string_view word, std::vector<std::int32_t>& tokens) const {
  if (model_.whole_words) {
    if (const std::int32_t id = words_.find(word); id != PieceTree::kAbsent) return tokens.push_back(id);
  }
  segmenter_.segment(word, tokens);
}

std::size_t ByteBpeTokenizer::encode_some(std::string_view text, TextPart part,
                                          std::vector<std::int32_t>& tokens) const {
  const auto scratch = scratches_.borrow();
  Run run(*this, *scratch, tokens);
  if (!model_.prefix_space || !part.begins || text.empty() || text[0] == ' ') return run.all(text, !part.ends);
  const std::size_t before = tokens.size();
  std::string spaced(1, ' ');
  spaced += text;
  const std::size_t done = run.all(spaced, !part.ends);
  if (done > 1) return done - 1;
  tokens.resize(before);
  return 0;
}

std::size_t ByteBpeTokenizer::cut_after(std::string_view text, std::size_t from) const {
  if (!pre_tokenizer_.cuts_before_blanks()) return text.size();
  for (std::size_t at = text.find(' ', from); at != text.npos; at = text.find(' ', at + 1)) {
    const char before = text[at - 1];
    const bool letter = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z');
    if (letter && !raw_tokens_.joins(before, ' ') && !normalized_tokens_.joins(before, ' ')) return at;
  }
  return text.size();
}

std::string_view ByteBpeTokenizer::token_bytes(std::int32_t id) const {
  require_in_vocabulary(id);
  return model_.pieces[static_cast<std::size_t>(id)];
}

ByteBpeModel ByteBpeTokenizer::model() const {
  ByteBpeModel model = model_;
  model.merges = segmenter_.merges();
  return model;
}

void ByteBpeTokenizer::append_text(std::int32_t previous, std::int32_t id, std::string& text) const {
  std::string_view bytes = token_bytes(id);
  if (model_.prefix_space && previous < 0 && bytes.starts_with(' ')) bytes.remove_prefix(1);
  text += bytes;
}

TokenizerData ByteBpeTokenizer::serialize() const {
  TokenizerData data{std::string(kind()), {}};
  pack_strings(model_.pieces, "pieces", "lengths", data);
  std::string merges, added;
  for (const MergeSegmenter::Merge& merge : segmenter_.merges()) {
    for (const std::int32_t id : {merge.left, merge.right, merge.joined}) {
      append_u32(merges, static_cast<std::uint32_t>(id));
    }
  }
  for (const ByteBpeModel::Added& one : model_.added) {
    append_u32(added, static_cast<std::uint32_t>(one.id));
    append_u32(added, (one.special ? kSpecial : 0) | (one.normalized ? kNormalized : 0) | (one.merged ? kMerged : 0) |
                          (one.trims ? kTrims : 0));
  }
  std::string settings;
  append_u32(settings, static_cast<std::uint32_t>(model_.form));
  append_u32(settings, model_.whole_words ? 1 : 0);
  append_u32(settings, model_.prefix_space ? 1 : 0);
  append_u32(settings, static_cast<std::uint32_t>(model_.end_of_document.value_or(-1)));
  pack_strings(model_.patterns, "patterns", "pattern_lengths", data);
  data.blobs.push_back({"merges", std::move(merges)});
  data.blobs.push_back({"added", std::move(added)});
  data.blobs.push_back({"settings", std::move(settings)});
  return data;
}

std::unique_ptr<ByteBpeTokenizer> ByteBpeTokenizer::from_data(const TokenizerData& data) {
  ByteBpeModel model;
  model.pieces = unpack_strings(data, "pieces", "lengths");
  const std::vector<std::uint32_t> merges = read_numbers(data, "merges", 3);
  const auto id = [](std::uint32_t number) { return static_cast<std::int32_t>(number); };
  for (std::size_t i = 0; i < merges.size(); i += 3) {
    model.merges.push_back({id(merges[i]), id(merges[i + 1]), id(merges[i + 2])});
  }
  const std::vector<std::uint32_t> added = read_numbers(data, "added", 2);
  for (std::size_t i = 0; i < added.size(); i += 2) {
    const std::uint32_t flags = added[i + 1];
    model.added.push_back({id(added[i]), (flags & kSpecial) != 0, (flags & kNormalized) != 0, (flags & kMerged) != 0,
                           (flags & kTrims) != 0});
  }
  model.patterns = unpack_strings(data, "patterns", "pattern_lengths");
  const std::vector<std::uint32_t> settings = read_numbers(data, "settings", 4);
  if (settings.size() != 4 || settings[0] > static_cast<std::uint32_t>(UnicodeForm::kNfkd)) {
    throw InputError("tokenizer: byte-bpe: {} settings, or an unknown normalization form; make the file again",
                     settings.size());
  }
  model.form = static_cast<UnicodeForm>(settings[0]);
  model.whole_words = settings[1] != 0;
  model.prefix_space = settings[2] != 0;
  if (id(settings[3]) >= 0) model.end_of_document = id(settings[3]);
  return std::make_unique<ByteBpeTokenizer>(std::move(model));
}

}  // namespace quipu
