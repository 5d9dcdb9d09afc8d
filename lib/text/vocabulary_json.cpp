#include "text/vocabulary_json.h"

#include <limits>
#include <utility>

#include "base/error.h"
#include "text/escape.h"

namespace quipu {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxValues = 200'000;

/// Takes the parser's events: the lists go where they belong, the rest becomes a tree.
class Handler final : public nlohmann::json_sax<Json> {
 public:
  explicit Handler(VocabularyJson& made) : made_(made) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool flag) override { return value(flag); }
  bool number_integer(number_integer_t number) override { return integer(number); }
  bool number_unsigned(number_unsigned_t number) override {
    constexpr auto kMost = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return integer(static_cast<std::int64_t>(std::min(number, kMost)));
  }
  bool number_float(number_float_t number, const string_t& /*spelled*/) override { return value(number); }
  bool binary(binary_t& /*bytes*/) override { throw InputError("has binary values; repair the file"); }

  bool string(string_t& text) override {
    if (place_ == Place::kMerges) {
      made_.merges.push_back(read_merge(text, made_.merges.size()));
      return true;
    }
    if (place_ != Place::kPair) return value(std::move(text));
    if (++pair_size_ > 2) throw InputError("merge {}: has more than 2 tokens; repair the file", made_.merges.size());
    if (pair_size_ == 1) pair_ = {std::move(text), 0};
    if (pair_size_ == 2) pair_ = {pair_.pair + text, pair_.pair.size()};
    return true;
  }

  bool start_object(std::size_t /*size*/) override {
    if (place_ != Place::kTree) wrong_value();
    if (frames_.size() == 2 && frames_[0].key == "model" && frames_[1].key == "vocab") {
      place_ = Place::kVocabulary;
      return true;
    }
    return open(Json::object());
  }
  bool key(string_t& name) override {
    (place_ == Place::kVocabulary ? entry_ : frames_.back().key) = std::move(name);
    return true;
  }
  bool end_object() override {
    if (place_ == Place::kVocabulary) return place_ = Place::kTree, true;
    frames_.pop_back();
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    if (place_ == Place::kMerges) {
      place_ = Place::kPair;
      pair_size_ = 0;
      return true;
    }
    if (place_ != Place::kTree) wrong_value();
    if (frames_.size() == 2 && frames_[0].key == "model" && frames_[1].key == "merges") {
      place_ = Place::kMerges;
      return true;
    }
    return open(Json::array());
  }
  bool end_array() override {
    if (place_ == Place::kPair) {
      if (pair_size_ != 2) {
        throw InputError("merge {}: has {} tokens instead of 2; repair the file", made_.merges.size(), pair_size_);
      }
      made_.merges.push_back(std::move(pair_));
      return place_ = Place::kMerges, true;
    }
    if (place_ == Place::kMerges) return place_ = Place::kTree, true;
    frames_.pop_back();
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const Json::exception& /*error*/) override {
    throw InputError("is no JSON in UTF-8 from byte {} on; get the file again", position);
  }

 private:
  enum class Place { kTree, kVocabulary, kMerges, kPair };
  struct Frame {
    Json* node;
    std::string key;
  };

  [[noreturn]] void wrong_value() const {
    if (place_ == Place::kVocabulary) {
      throw InputError("vocabulary: '{}' has an id that is no whole number; repair the file", escape_text(entry_));
    }
    throw InputError("merge {}: is no pair of tokens; repair the file", made_.merges.size());
  }

  bool integer(std::int64_t number) {
    if (place_ == Place::kVocabulary || (place_ == Place::kTree && frames_.size() == 1)) {
      std::string& name = place_ == Place::kVocabulary ? entry_ : frames_[0].key;
      made_.vocabulary.push_back({std::move(name), number});
      name.clear();
      return true;
    }
    return value(number);
  }

  bool value(Json made) {
    if (place_ != Place::kTree) wrong_value();
    add(std::move(made));
    return true;
  }

  bool open(Json made) {
    if (frames_.size() >= kMaxDepth) {
      throw InputError("is nested more than {} deep; no tokenizer is", kMaxDepth);
    }
    frames_.push_back({add(std::move(made)), {}});
    return true;
  }

  Json* add(Json made) {
    if (++values_ > kMaxValues)
      throw InputError("has more than {} values beside its lists; no tokenizer has", kMaxValues);
    if (frames_.empty()) {
      if (!made.is_object()) throw InputError("is no JSON object; give a vocab.json or a tokenizer.json");
      made_.rest = std::move(made);
      return &made_.rest;
    }
    Frame& frame = frames_.back();
    if (frame.node->is_array()) {
      frame.node->push_back(std::move(made));
      return &frame.node->back();
    }
    if (frame.node->contains(frame.key)) {
      throw InputError("'{}' is there twice in one object; repair the file", escape_text(frame.key));
    }
    return &((*frame.node)[frame.key] = std::move(made));
  }

  VocabularyJson& made_;
  Place place_ = Place::kTree;
  std::vector<Frame> frames_;
  std::string entry_;
  VocabularyJson::Merge pair_;
  int pair_size_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

VocabularyJson::Merge read_merge(std::string_view line, std::size_t number) {
  const std::size_t blank = line.find(' ');
  if (blank == line.npos || blank == 0 || blank + 1 == line.size() || line.find(' ', blank + 1) != line.npos) {
    throw InputError("merge {}: '{}' is not two tokens with a blank between them; repair the file", number,
                     escape_text(line.substr(0, 100)));
  }
  return {fmt::format("{}{}", line.substr(0, blank), line.substr(blank + 1)), blank};
}

VocabularyJson read_vocabulary_json(std::string_view text) {
  VocabularyJson made;
  Handler handler(made);
  Json::sax_parse(text.begin(), text.end(), &handler);
  return made;
}

}  // namespace quipu
