#include "text/byte_bpe_files.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/escape.h"
#include "text/vocabulary_json.h"

namespace quipu {

namespace {

using Json = nlohmann::json;
using Added = ByteBpeModel::Added;

constexpr std::array<std::string_view, 5> kDocumentEnds = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>",
                                                           "<|eot_id|>"};

struct AddedToken {
  Added added;
  std::string text;
};

/// Puts vocabulary, merges and added tokens together.
class Assembly {
 public:
  Assembly(const VocabularyJson& read, const std::vector<AddedToken>& added) : read_(read), added_(added) {
    make_room();
    for (const VocabularyJson::Entry& entry : read_.vocabulary) {
      const auto id = static_cast<std::int32_t>(entry.id);
      if (!ids_.emplace(entry.spelled, id).second) {
        throw InputError("vocabulary: '{}' is there twice; give each token once", escape_text(entry.spelled));
      }
      if (!spelled_[static_cast<std::size_t>(id)].empty()) {
        throw InputError("vocabulary: '{}' and '{}' have the same id {}; repair the file", escape_text(entry.spelled),
                         escape_text(spelled_[static_cast<std::size_t>(id)]), id);
      }
      spelled_[static_cast<std::size_t>(id)] = entry.spelled;
    }
    add_merges();
    add_tokens();
    spell();
  }

  ByteBpeModel model;

 private:
  void check_range(std::int64_t id, std::string_view text, std::size_t entries) {
    constexpr std::size_t kSlack = 1000;  // vocabularies have holes, but not so many
    const auto most = static_cast<std::int64_t>(2 * entries + kSlack);
    if (id < 0 || id >= most) {
      throw InputError("vocabulary: '{}' has id {}, outside 0 to {} for {} tokens; repair the file", escape_text(text),
                       id, most - 1, entries);
    }
    if (text.empty()) throw InputError("vocabulary: token {} is empty; repair the file", id);
    size_ = std::max(size_, static_cast<std::size_t>(id) + 1);
  }

  void make_room() {
    const std::size_t entries = read_.vocabulary.size() + added_.size();
    for (const VocabularyJson::Entry& entry : read_.vocabulary) check_range(entry.id, entry.spelled, entries);
    for (const AddedToken& token : added_) check_range(token.added.id, token.text, entries);
    model.pieces.resize(size_);
    spelled_.resize(size_);
    merged_.resize(size_);
    ids_.reserve(read_.vocabulary.size());
  }

  std::int32_t id_of(std::string_view spelled, std::size_t merge) const {
    const auto found = ids_.find(spelled);
    if (found != ids_.end()) return found->second;
    throw InputError("merge {}: '{}' is not in the vocabulary of {} tokens; repair the file", merge,
                     escape_text(spelled), ids_.size());
  }

  void add_merges() {
    for (std::size_t i = 0; i < read_.merges.size(); ++i) {
      const VocabularyJson::Merge& merge = read_.merges[i];
      const std::int32_t joined = id_of(merge.pair, i);
      model.merges.push_back({id_of(merge.left(), i), id_of(merge.right(), i), joined});
      merged_[static_cast<std::size_t>(joined)] = true;
    }
  }

  void add_tokens() {
    for (const AddedToken& token : added_) {
      Added added = token.added;
      const auto id = static_cast<std::size_t>(added.id);
      if (!spelled_[id].empty() && spelled_[id] != token.text) {
        throw InputError("added token {}: is '{}', but '{}' in the vocabulary; repair the file", id,
                         escape_text(token.text), escape_text(spelled_[id]));
      }
      const auto bytes = bytes_of_spelling(token.text);
      added.merged = merged_[id] || (!spelled_[id].empty() && bytes && bytes->size() == 1);
      model.pieces[id] = token.text;
      model.added.push_back(added);
      if (added.special && !model.end_of_document &&
          std::ranges::find(kDocumentEnds, token.text) != kDocumentEnds.end()) {
        model.end_of_document = added.id;
      }
    }
    std::ranges::sort(model.added, {}, &Added::id);
  }

  void spell() {
    for (std::size_t id = 0; id < size_; ++id) {
      if (spelled_[id].empty() || !model.pieces[id].empty()) continue;
      const auto bytes = bytes_of_spelling(spelled_[id]);
      if (!bytes) {
        throw InputError(
            "vocabulary: token {} ('{}') is not spelled in the bytes' alphabet; this is no byte-level "
            "vocabulary (where it comes from SentencePiece, give its .model)",
            id, escape_text(spelled_[id]));
      }
      model.pieces[id] = *bytes;
    }
  }

  const VocabularyJson& read_;
  const std::vector<AddedToken>& added_;
  std::size_t size_ = 0;
  std::vector<std::string_view> spelled_;  // by id, in the vocabulary
  std::vector<bool> merged_;               // by id: a merge makes it
  std::unordered_map<std::string_view, std::int32_t> ids_;
};

/// A part of the file that names its `type`, with its options.
class Component {
 public:
  Component(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json_.is_object() || !json_.contains("type") || !json_["type"].is_string()) {
      throw InputError("{}: has no type; repair the file", where_);
    }
    type_ = json_["type"].get<std::string>();
  }

  const std::string& type() const { return type_; }

  bool flag(const char* name, bool absent) const {
    if (!json_.contains(name) || json_[name].is_null()) return absent;
    if (!json_[name].is_boolean()) throw InputError("{}: {}: {} is no true or false", where_, type_, name);
    return json_[name].get<bool>();
  }
  std::string text(const char* name, std::string_view absent) const {
    if (!json_.contains(name) || json_[name].is_null()) return std::string(absent);
    if (!json_[name].is_string()) throw InputError("{}: {}: {} is no string", where_, type_, name);
    return json_[name].get<std::string>();
  }
  const Json& part(const char* name) const {
    if (!json_.contains(name)) throw InputError("{}: {}: has no {}; repair the file", where_, type_, name);
    return json_[name];
  }
  [[noreturn]] void refuse(std::string_view what) const {
    throw InputError("{}: {} is not read here; choose another tokenizer", where_, escape_text(what));
  }

 private:
  const Json& json_;
  std::string where_;
  std::string type_;
};

void read_normalizer(const Json& json, ByteBpeModel& model) {
  const Component normalizer(json, "normalizer");
  if (normalizer.type() == "Sequence") {
    for (const Json& part : normalizer.part("normalizers")) read_normalizer(part, model);
    return;
  }
  const auto form = unicode_form(normalizer.type());
  if (!form || *form == UnicodeForm::kNone) normalizer.refuse(normalizer.type());
  if (model.form != UnicodeForm::kNone) normalizer.refuse("more than one normalization form");
  model.form = *form;
}

std::string pattern_of(std::string_view text) {
  std::string regex;
  for (const char c : text) {
    if (std::string_view("\\^$.[]|()?*+{}").find(c) != std::string_view::npos) regex += '\\';
    regex += c;
  }
  return regex;
}

std::string repeated(const std::string& regex) { return "(?:" + regex + ")+"; }

std::string split_pattern(const Component& split) {
  const Json& pattern = split.part("pattern");
  const bool is_regex = pattern.is_object() && pattern.contains("Regex") && pattern["Regex"].is_string();
  const bool is_text = pattern.is_object() && pattern.contains("String") && pattern["String"].is_string();
  if (!is_regex && !is_text) split.refuse("a Split without a Regex or String");
  const std::string regex =
      is_regex ? pattern["Regex"].get<std::string>() : pattern_of(pattern["String"].get<std::string>());
  const std::string behavior = split.text("behavior", "");
  if (behavior == "Isolated" || (behavior == "Removed" && split.flag("invert", false))) return regex;
  if (behavior == "Contiguous") return repeated(regex);
  split.refuse("Split with the behavior " + behavior);
}

class PreTokenizerReader {
 public:
  explicit PreTokenizerReader(ByteBpeModel& model) : model_(model) {}

  void read(const Json& json) {
    const Component part(json, "pre_tokenizer");
    if (part.type() == "Sequence") {
      for (const Json& inner : part.part("pretokenizers")) read(inner);
      return;
    }
    if (has_bytes_) part.refuse(part.type() + " behind ByteLevel");
    if (part.type() == "ByteLevel") {
      read_byte_level(part);
    } else if (part.type() == "Split") {
      model_.patterns.push_back(split_pattern(part));
    } else if (part.type() == "Digits") {
      model_.patterns.push_back(part.flag("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
    } else if (part.type() == "Punctuation") {
      const std::string behavior = part.text("behavior", "Isolated");
      const std::string regex = R"([\p{P}!-/:-@\[-`{-~])";
      if (behavior != "Isolated" && behavior != "Contiguous") part.refuse("Punctuation with the behavior " + behavior);
      model_.patterns.push_back(behavior == "Contiguous" ? repeated(regex) : regex);
    } else {
      part.refuse(part.type());
    }
  }

  void finish() const {
    if (!has_bytes_) {
      throw InputError(
          "pre_tokenizer: has no ByteLevel, and only byte-level BPE is read here; where it comes from "
          "SentencePiece, give its .model");
    }
  }

 private:
  void read_byte_level(const Component& part) {
    has_bytes_ = true;
    if (part.flag("add_prefix_space", true)) {
      if (!model_.patterns.empty()) part.refuse("ByteLevel with add_prefix_space behind another pre-tokenizer");
      model_.prefix_space = true;
    }
    if (part.flag("use_regex", true)) model_.patterns.emplace_back(kGpt2Pattern);
  }

  ByteBpeModel& model_;
  bool has_bytes_ = false;
};

std::vector<AddedToken> read_added(const Json& rest) {
  std::vector<AddedToken> tokens;
  if (!rest.contains("added_tokens") || rest["added_tokens"].is_null()) return tokens;
  if (!rest["added_tokens"].is_array()) throw InputError("added_tokens: is no list; repair the file");
  for (const Json& one : rest["added_tokens"]) {
    const std::size_t number = tokens.size();
    const auto is = [&](const char* name) {
      return one.contains(name) && one[name].is_boolean() && one[name].get<bool>();
    };
    if (!one.is_object() || !one.contains("id") || !one["id"].is_number_integer() || !one.contains("content") ||
        !one["content"].is_string()) {
      throw InputError("added_tokens: number {} has no id or no content; repair the file", number);
    }
    const auto id = one["id"].get<std::int64_t>();
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
      throw InputError("added_tokens: number {} has id {}, outside the vocabulary; repair the file", number, id);
    }
    const bool special = is("special");
    tokens.push_back({{static_cast<std::int32_t>(id), special, is("normalized") && !special, false,
                       is("single_word") || is("lstrip") || is("rstrip")},
                      one["content"].get<std::string>()});
  }
  return tokens;
}

void check_model(const Json& model) {
  const auto is_set = [&](const char* name) {
    if (!model.contains(name)) return false;
    const Json& value = model[name];
    return !(value.is_null() || value == false || value == "" || value == 0 || value == 0.0);
  };
  if (!model.is_object()) throw InputError("model: is no object; repair the file");
  if (model.contains("type") && model["type"] != "BPE") {
    throw InputError("model: the type {} is not read here (BPE is); where it comes from SentencePiece, give its .model",
                     model["type"].dump());
  }
  for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
    if (!is_set(name)) continue;
    throw InputError("model: {} {} is not read here; where it comes from SentencePiece, give its .model", name,
                     model[name].dump());
  }
}

void check_decoder(const Json& rest) {
  if (!rest.contains("decoder") || rest["decoder"].is_null()) return;
  const Component decoder(rest["decoder"], "decoder");
  if (decoder.type() != "ByteLevel") decoder.refuse(decoder.type());
}

}  // namespace

ByteBpeModel read_gpt2_files(std::string_view vocab_json, std::string_view merges_txt) {
  VocabularyJson read = read_vocabulary_json(vocab_json);
  if (!read.rest.empty()) {
    throw InputError("vocab.json: '{}' has no whole number; give the vocab.json that goes with merges.txt",
                     escape_text(read.rest.begin().key()));
  }
  while (!merges_txt.empty()) {
    const std::size_t end = std::min(merges_txt.find('\n'), merges_txt.size());
    std::string_view line = merges_txt.substr(0, end);
    merges_txt.remove_prefix(std::min(end + 1, merges_txt.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (read.merges.empty() && line.starts_with("#version"))) continue;
    read.merges.push_back(read_merge(line, read.merges.size()));
  }
  std::vector<AddedToken> added;
  for (const VocabularyJson::Entry& entry : read.vocabulary) {
    if (entry.spelled != "<|endoftext|>" || entry.id < 0 || entry.id > std::numeric_limits<std::int32_t>::max())
      continue;
    added.push_back({{static_cast<std::int32_t>(entry.id), true}, entry.spelled});
  }
  ByteBpeModel model = std::move(Assembly(read, added).model);
  model.patterns.emplace_back(kGpt2Pattern);
  return model;
}

ByteBpeModel read_tokenizer_json(std::string_view text) {
  const VocabularyJson read = read_vocabulary_json(text);
  if (!read.rest.contains("model")) throw InputError("has no model; give a tokenizer.json");
  check_model(read.rest["model"]);
  check_decoder(read.rest);
  ByteBpeModel model = std::move(Assembly(read, read_added(read.rest)).model);
  if (read.rest.contains("normalizer") && !read.rest["normalizer"].is_null()) {
    read_normalizer(read.rest["normalizer"], model);
  }
  PreTokenizerReader pre_tokenizer(model);
  if (read.rest.contains("pre_tokenizer") && !read.rest["pre_tokenizer"].is_null()) {
    pre_tokenizer.read(read.rest["pre_tokenizer"]);
  }
  pre_tokenizer.finish();
  const Json& bpe = read.rest["model"];
  model.whole_words = bpe.contains("ignore_merges") && bpe["ignore_merges"] == true;
  return model;
}

ByteBpeModel make_byte_bpe(const std::vector<std::string>& tokens, const std::vector<ListedToken>& kinds,
                           const std::vector<std::string>& merges) {
  if (kinds.size() != tokens.size())
    throw InputError("vocabulary: has {} tokens, and {} kinds; repair the file", tokens.size(), kinds.size());
  VocabularyJson read;
  std::vector<AddedToken> added;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (kinds[id] == ListedToken::kNone) continue;
    read.vocabulary.push_back({tokens[id], static_cast<std::int64_t>(id)});
    if (kinds[id] != ListedToken::kText)
      added.push_back({{static_cast<std::int32_t>(id), kinds[id] == ListedToken::kSpecial}, tokens[id]});
  }
  for (const std::string& merge : merges) read.merges.push_back(read_merge(merge, read.merges.size()));
  return std::move(Assembly(read, added).model);
}

}  // namespace quipu
