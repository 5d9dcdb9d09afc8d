#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/real.h"
#include "store/provenance.h"
#include "text/corpus_encoder.h"

namespace quipu {

/// What a dataset is made of.
struct TextDatasetSpec {
  std::string output;  ///< `-`: stdout
  /// `bytes`, `words[:N]`, `bpe:N`, `unigram:N`, or what load_tokenizer takes.
  std::string tokenizer = "bytes";
  bool special_tokens = false;  ///< strings that stand for special tokens are read as these
  DocumentRule documents = DocumentRule::kFile;
  /// Text files by split, plain or gzip; one of them may be `-`. A tokenizer is learned from the training text alone.
  std::vector<std::pair<std::string, std::vector<std::string>>> splits;
  /// Shares of the training text, in bytes, that become `valid` and `test`: its end is `test`, what comes before that
  /// `valid`. With n bytes the training text keeps the first floor(n (1 - valid - test)). Where documents are files,
  /// the cut is exactly there (but inside no character of UTF-8); where they are lines or paragraphs, the one that the
  /// cut falls into stays whole, before it.
  double valid_share = 0;
  double test_share = 0;
  std::vector<std::string> commands;  ///< for the provenance
  /// Called now and then: what is being done ("count", "learn", "encode") and the bytes of text so far.
  std::function<void(const char* stage, std::uint64_t bytes)> on_progress;
};

struct TextDatasetSummary {
  std::string tokenizer;  ///< as in "bpe:4096"
  Index vocab = 0;
  std::vector<std::pair<std::string, SplitSummary>> splits;
};

/// Makes a dataset of text files, in bounded memory. Files are read once for each of: counting (where there are
/// shares), learning a tokenizer (where it needs text), encoding; a pipe that has to be read again is kept in $TMPDIR.
/// Throws UsageError where the specification cannot be, InputError where a file is missing, empty, damaged or the
/// output itself, and where a split has no token.
TextDatasetSummary make_text_dataset(const TextDatasetSpec& spec);

/// The tokenizer of a dataset or checkpoint, or one that another program made (see read_tokenizer_file). InputError
/// where `path` is neither.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

}  // namespace quipu
