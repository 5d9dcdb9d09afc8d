#include "text/word_tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "text/blank.h"

namespace quipu {

namespace {

constexpr std::string_view kUnknownWord = "<unk>";

const std::string& words_blob(const TokenizerData& data) {
  for (const TokenizerData::Blob& blob : data.blobs) {
    if (blob.name == "words") return blob.bytes;
  }
  throw InputError("tokenizer: words: has no list of words; the file is damaged, make it again");
}

}  // namespace

WordTokenizer::WordTokenizer(std::vector<std::string> words) {
  words_.reserve(words.size() + 2);
  words_.emplace_back(kUnknownWord);
  words_.emplace_back("\n");
  ids_.reserve(words.size() + 1);
  ids_.emplace(kUnknownWord, kUnknown);
  for (std::string& word : words) {
    if (word.empty() || std::any_of(word.begin(), word.end(), is_blank)) {
      throw InputError("tokenizer: words: word {} is empty or has a blank; make the file again", words_.size());
    }
    if (!ids_.emplace(word, static_cast<std::int32_t>(words_.size())).second) {
      throw InputError("tokenizer: words: '{}' is listed twice; make the file again", word);
    }
    words_.push_back(std::move(word));
  }
}

std::unique_ptr<WordTokenizer> WordTokenizer::from_data(const TokenizerData& data) {
  const std::string_view text = words_blob(data);
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == text.npos) throw InputError("tokenizer: words: the list of words is cut short; make the file again");
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return std::make_unique<WordTokenizer>(std::move(words));
}

TokenizerData WordTokenizer::serialize() const {
  std::string text;
  for (std::size_t id = 2; id < words_.size(); ++id) {
    text += words_[id];
    text += '\n';
  }
  return {"words", {{"words", std::move(text)}}};
}

std::size_t WordTokenizer::encode_some(std::string_view text, TextPart part, std::vector<std::int32_t>& tokens) const {
  std::size_t at = 0;
  while (at < text.size()) {
    if (is_blank(text[at])) {
      if (text[at] == '\n') tokens.push_back(kEndOfLine);
      ++at;
      continue;
    }
    const auto blank = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_blank);
    if (blank == text.end() && !part.ends) return at;
    const auto end = static_cast<std::size_t>(blank - text.begin());
    const auto found = ids_.find(text.substr(at, end - at));
    tokens.push_back(found == ids_.end() ? kUnknown : found->second);
    at = end;
  }
  return at;
}

std::size_t WordTokenizer::cut_after(std::string_view text, std::size_t from) const {
  if (from >= text.size()) return text.size();
  const auto blank = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), is_blank);
  return static_cast<std::size_t>(blank - text.begin());
}

std::string_view WordTokenizer::token_bytes(std::int32_t id) const {
  require_in_vocabulary(id);
  return words_[static_cast<std::size_t>(id)];
}

void WordTokenizer::append_text(std::int32_t previous, std::int32_t id, std::string& text) const {
  if (previous >= 0 && previous != kEndOfLine && id != kEndOfLine) text += ' ';
  text += token_bytes(id);
}

}  // namespace quipu
