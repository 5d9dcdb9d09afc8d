#include "text/subword_trainer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "text/subword_tokenizer.h"
#include "text/word_counts.h"
#include "text/word_split.h"

namespace quipu {

namespace {

constexpr std::size_t kMaxCountedWords = 8'000'000;
constexpr std::size_t kMaxTrainingWords = 500'000;
constexpr std::uint64_t kMaxShownWords = 2'000'000;
constexpr std::uint64_t kMaxShownBytes = 24'000'000;
/// SentencePiece insists on an unknown piece. No letter of ours is in it, so it never meets the text, and it is
/// dropped.
constexpr const char* kUnknownPiece = "\u2047";

/// SentencePiece normalises, splits at blanks and lines, and refuses NUL; so it is shown letters instead of bytes: the
/// printable bytes of ASCII stand for themselves, every other byte b for the letter U+0100 + b.
void append_letter(std::string& letters, unsigned char byte) {
  if (byte > 0x20 && byte < 0x7f) {
    letters += static_cast<char>(byte);
  } else {
    letters += static_cast<char>(byte < 0x40 ? 0xc4 : byte < 0x80 ? 0xc5 : byte < 0xc0 ? 0xc6 : 0xc7);
    letters += static_cast<char>(0x80 | (byte & 0x3f));
  }
}

std::string to_letters(std::string_view bytes) {
  std::string letters;
  for (const char c : bytes) append_letter(letters, static_cast<unsigned char>(c));
  return letters;
}

std::string from_letters(std::string_view letters) {
  std::string bytes;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto lead = static_cast<unsigned char>(letters[i]);
    if (lead < 0x80) {
      bytes += letters[i];
    } else {
      bytes += static_cast<char>((lead & 3) << 6 | (letters[++i] & 0x3f));
    }
  }
  return bytes;
}

/// The words and their counts, as SentencePiece's `bpe` reads them: `word <tab> count`.
class CountedWords final : public sentencepiece::SentenceIterator {
 public:
  explicit CountedWords(const std::vector<WordCounts::Count>& words) : words_(words) { show(); }

  bool done() const override { return at_ == words_.size(); }
  void Next() override {
    ++at_;
    show();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void show() {
    if (!done()) line_ = fmt::format("{}\t{}", to_letters(words_[at_].first), words_[at_].second);
  }

  const std::vector<WordCounts::Count>& words_;
  std::size_t at_ = 0;
  std::string line_;
};

/// The words as `unigram` must see them, each as often as it occurs, or in proportion where that is too often: it
/// begins with the strings that occur repeatedly and in more than one context, and does not look at counts for that. So
/// that a word that is part of no other is such a string too, every second one is followed by the unknown piece, which
/// SentencePiece cuts off.
class RepeatedWords final : public sentencepiece::SentenceIterator {
 public:
  explicit RepeatedWords(const std::vector<WordCounts::Count>& words) : words_(words) {
    std::uint64_t all_words = 0, bytes = 0;
    for (const auto& [word, count] : words_) {
      all_words += count;
      bytes += count * word.size();
    }
    const auto share = [](std::uint64_t most, std::uint64_t all) {
      return all <= most ? 1.0 : static_cast<double>(most) / static_cast<double>(all);
    };
    share_ = std::min(share(kMaxShownWords, all_words), share(kMaxShownBytes, bytes));
    show();
  }

  bool done() const override { return at_ == words_.size(); }
  void Next() override {
    if (++shown_ >= times(words_[at_].second)) {
      ++at_;
      shown_ = 0;
    }
    show();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::uint64_t times(std::uint64_t count) const {
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(share_ * static_cast<double>(count)));
  }
  void show() {
    if (done()) return;
    if (shown_ == 0) letters_ = to_letters(words_[at_].first);
    line_ = letters_;
    if (shown_ % 2 == 1) line_ += kUnknownPiece;
  }

  const std::vector<WordCounts::Count>& words_;
  double share_ = 1;  // of the occurrences
  std::size_t at_ = 0;
  std::uint64_t shown_ = 0;
  std::string letters_;
  std::string line_;
};

/// Adds every byte as a word of its own: SentencePiece leaves out letters that the text lacks, required or not, and the
/// rarest ones where they are too few for single precision. Together they are 1/4096 of the text.
void add_all_bytes(std::vector<WordCounts::Count>& words) {
  std::uint64_t total = 0;
  for (const auto& [word, count] : words) total += count * word.size();
  for (int byte = 0; byte < 256; ++byte) {
    words.emplace_back(std::string(1, static_cast<char>(byte)), 1 + (total >> 20));
  }
}

std::string train_model(const TokenizerSpec& spec, const std::vector<WordCounts::Count>& words) {
  const std::unordered_map<std::string, std::string> options{
      {"model_type", spec.kind},
      {"vocab_size", std::to_string(spec.size + 1)},
      {"hard_vocab_limit", "false"},
      {"input_format", spec.kind == "bpe" ? "tsv" : "text"},
      {"character_coverage", "1.0"},
      {"max_sentencepiece_length", std::to_string(kMaxPieceBytes)},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"split_by_unicode_script", "false"},
      {"split_by_number", "false"},
      {"unk_piece", kUnknownPiece},
      {"unk_id", "0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      {"num_threads", "4"},  // fixed: partial sums depend on it
      {"minloglevel", "3"},
  };
  std::unique_ptr<sentencepiece::SentenceIterator> iterator = std::make_unique<CountedWords>(words);
  if (spec.kind == "unigram") iterator = std::make_unique<RepeatedWords>(words);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, iterator.get(), &model);
  if (!status.ok()) {
    throw InputError("tokenizer: {}:{}: training failed ({}); give more text or a smaller size", spec.kind, spec.size,
                     status.error_message());
  }
  return model;
}

/// The pieces of a trained model in its order, the single bytes first.
std::unique_ptr<Tokenizer> tokenizer_of(const TokenizerSpec& spec, const std::string& model) {
  sentencepiece::SentencePieceProcessor processor;
  if (const auto status = processor.LoadFromSerializedProto(model); !status.ok()) {
    throw InternalError("a trained tokenizer cannot be read: {}", status.ToString());
  }
  const bool scored = spec.kind == "unigram";
  std::vector<std::string> pieces(256);
  std::vector<float> scores(scored ? 256 : 0);
  for (int id = 1; id < processor.GetPieceSize(); ++id) {
    std::string piece = from_letters(processor.IdToPiece(id));
    if (piece.size() == 1) {
      const auto byte = static_cast<std::size_t>(static_cast<unsigned char>(piece[0]));
      pieces[byte] = std::move(piece);
      if (scored) scores[byte] = processor.GetScore(id);
    } else {
      pieces.push_back(std::move(piece));
      if (scored) scores.push_back(processor.GetScore(id));
    }
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (pieces[byte].empty()) throw InternalError("a trained tokenizer lacks byte {}", byte);
  }
  const auto size = static_cast<std::int64_t>(pieces.size());
  if (size < spec.size) {
    throw UsageError("tokenizer: {}:{}: the training text gives at most {} pieces; give {}:{} or more text", spec.kind,
                     spec.size, size, spec.kind, size);
  }
  const auto method = scored ? SubwordTokenizer::Method::kUnigram : SubwordTokenizer::Method::kBpe;
  return std::make_unique<SubwordTokenizer>(method, std::move(pieces), std::move(scores));
}

class SubwordTrainer final : public TokenizerTrainer {
 public:
  explicit SubwordTrainer(TokenizerSpec spec) : spec_(std::move(spec)) {}

  void text(std::string_view block) override {
    open_ += block;
    count_words(false);
  }
  void end_document() override { count_words(true); }

  std::unique_ptr<Tokenizer> finish() override {
    std::vector<WordCounts::Count> words = counts_.most_frequent(kMaxTrainingWords);
    if (words.empty()) throw InputError("tokenizer: {}: the training text is empty; give more text", spec_.kind);
    add_all_bytes(words);
    return tokenizer_of(spec_, train_model(spec_, words));
  }

 private:
  void count_words(bool complete) {
    std::size_t at = 0;
    while (at < open_.size()) {
      const std::size_t end = split_word(open_, at, complete);
      if (end == 0) break;
      counts_.add(std::string_view(open_).substr(at, end - at));
      at = end;
    }
    open_.erase(0, at);
  }

  TokenizerSpec spec_;
  std::string open_;  // the unfinished end of the document
  WordCounts counts_{kMaxCountedWords};
};

}  // namespace

std::unique_ptr<TokenizerTrainer> make_subword_trainer(const TokenizerSpec& spec) {
  return std::make_unique<SubwordTrainer>(spec);
}

}  // namespace quipu
