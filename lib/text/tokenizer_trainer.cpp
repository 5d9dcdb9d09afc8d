#include "text/tokenizer_trainer.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "text/blank.h"
#include "text/byte_tokenizer.h"
#include "text/subword_trainer.h"
#include "text/word_tokenizer.h"

namespace quipu {

namespace {

class ByteTrainer final : public TokenizerTrainer {
 public:
  void text(std::string_view /*block*/) override {}
  void end_document() override {}
  bool needs_text() const override { return false; }
  std::unique_ptr<Tokenizer> finish() override { return std::make_unique<ByteTokenizer>(); }
};

class WordTrainer final : public TokenizerTrainer {
 public:
  explicit WordTrainer(std::int64_t size) : size_(size) {}

  void text(std::string_view block) override {
    for (auto at = block.begin(); at != block.end();) {
      const auto end = std::find_if(at, block.end(), is_blank);
      word_.append(at, end);
      if (end == block.end()) return;
      end_document();
      at = end + 1;
    }
  }

  void end_document() override {
    if (!word_.empty() && word_ != "<unk>") counts_.add(word_);
    word_.clear();
  }

  std::unique_ptr<Tokenizer> finish() override {
    if (counts_.empty()) throw InputError("tokenizer: words: the training text has no words; give more text");
    std::vector<std::string> words;
    for (auto& [word, count] : counts_.most_frequent(static_cast<std::size_t>(size_ == 0 ? 0 : size_ - 2))) {
      words.push_back(std::move(word));
    }
    return std::make_unique<WordTokenizer>(std::move(words));
  }

 private:
  std::int64_t size_;
  std::string word_;
  WordCounts counts_;
};

void require_size(const TokenizerSpec& spec, std::int64_t low, std::int64_t high) {
  if (spec.size >= low && spec.size <= high) return;
  throw UsageError("tokenizer: {}: vocabulary size {} is outside {} to {}; give another size, as in {}:{}", spec.kind,
                   spec.size, low, high, spec.kind, spec.kind == "words" ? 30000 : 4096);
}

}  // namespace

TokenizerSpec parse_tokenizer_spec(std::string_view text) {
  const std::size_t colon = text.find(':');
  TokenizerSpec spec{std::string(text.substr(0, colon)), 0};
  const bool sized = spec.kind == "bpe" || spec.kind == "unigram";
  if (!sized && spec.kind != "bytes" && spec.kind != "words") {
    throw UsageError("tokenizer: '{}' is unknown; give bytes, words, words:N, bpe:N or unigram:N", text);
  }
  if (colon == text.npos) {
    if (sized) throw UsageError("tokenizer: '{}' needs the size of its vocabulary; give {}:4096", text, text);
    return spec;
  }
  if (spec.kind == "bytes") throw UsageError("tokenizer: 'bytes' takes no size (it is 256); give bytes");
  const char* begin = text.data() + colon + 1;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(begin, end, spec.size);
  if (parsed.ec == std::errc::result_out_of_range) {
    spec.size = std::numeric_limits<std::int64_t>::max();
  } else if (parsed.ec != std::errc() || parsed.ptr != end || spec.size <= 0) {
    throw UsageError("tokenizer: '{}' is not a size; give a whole number, as in {}:4096", std::string_view(begin, end),
                     spec.kind);
  }
  return spec;
}

std::unique_ptr<TokenizerTrainer> make_trainer(const TokenizerSpec& spec) {
  if (spec.kind == "bytes") {
    if (spec.size != 0) throw UsageError("tokenizer: 'bytes' takes no size (it is 256); give bytes");
    return std::make_unique<ByteTrainer>();
  }
  if (spec.kind == "words") {
    if (spec.size != 0) require_size(spec, kMinWordsSize, kMaxWordsSize);
    return std::make_unique<WordTrainer>(spec.size);
  }
  if (spec.kind == "bpe" || spec.kind == "unigram") {
    require_size(spec, kMinSubwordSize, kMaxSubwordSize);
    return make_subword_trainer(spec);
  }
  throw UsageError("tokenizer: '{}' is unknown; give bytes, words, words:N, bpe:N or unigram:N", spec.kind);
}

}  // namespace quipu
