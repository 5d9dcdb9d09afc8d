#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/real.h"
#include "base/word_counter.h"
#include "store/provenance.h"

namespace quipu {

inline const H5Format kDatasetFormat{"quipu-dataset", 1};

/// One split while it is written: a stream of tokens cut into documents, or examples of a scored task. Sequence pairs
/// are two splits, `train/source` and `train/target`.
class SplitWriter {
 public:
  /// Adds tokens to the open document. Throws InputError where one is outside the vocabulary.
  void append(std::span<const std::int32_t> tokens);

  /// Ends the open document, which may be empty. Tokens after the last end are one more document.
  void end_document();

  /// Counts bytes and words of a piece of the original text; a word may span pieces, but not documents.
  void count_text(std::string_view piece) { counter_.add(piece); }

  /// Adds counts made elsewhere.
  void add_counts(std::uint64_t bytes, std::uint64_t words);

  /// Adds examples of a scored task: inputs and targets [n, length]; a target of -1 is not scored. All examples of a
  /// split have the same length; a split has either tokens or examples.
  void append_examples(std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets, Index length);

  /// Of each example, in their order: the place of the token that answers it, -1 where it is not known.
  void append_sources(std::span<const std::int32_t> sources);

 private:
  friend class DatasetWriter;
  SplitWriter(H5Writer& file, const std::string& path, Index vocab);
  void write_tokens(H5Stream& stream, std::span<const std::int32_t> tokens);
  void begin_tokens();
  void finish();

  H5Writer& file_;
  std::string path_;
  Index vocab_;
  ElementType type_;  // of a token
  WordCounter counter_;
  std::uint64_t more_bytes_ = 0;
  std::uint64_t more_words_ = 0;
  H5Stream* tokens_ = nullptr;
  H5Stream* documents_ = nullptr;
  H5Stream* inputs_ = nullptr;
  H5Stream* targets_ = nullptr;
  H5Stream* sources_ = nullptr;
  Index length_ = 0;
  std::uint64_t last_end_ = 0;
};

/// Writes a dataset piece by piece, at constant memory. Nothing is seen under the path until `commit`.
class DatasetWriter {
 public:
  DatasetWriter(const std::string& path, const TokenizerData& tokenizer, Index vocab, const Provenance& provenance,
                const std::string& created = creation_time());

  /// The split of a name (`train`, `valid`, `test` or another), begun where it is new. Several may be open at a time.
  SplitWriter& split(const std::string& name);

  /// A fact of the scored task that the examples are of, an attribute of `/task`.
  void task_fact(const std::string& name, const H5Value& value);

  /// Adds a line `DIGEST PATH` to the provenance, of data whose digest is known only once it was read.
  void add_data(const std::string& line) { provenance_.data.push_back(line); }

  void commit();

 private:
  H5Writer file_;
  Index vocab_;
  Provenance provenance_;
  std::map<std::string, std::unique_ptr<SplitWriter>> splits_;
};

/// One split of an open dataset. Small ones are held in memory once they are read; large ones are read in pieces.
class Split {
 public:
  const std::string& name() const { return name_; }

  /// Tokens of the stream (scored tasks: of all inputs), documents, and bytes and words of the original text.
  Index tokens() const { return tokens_; }
  Index documents() const { return documents_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t words() const { return words_; }

  /// Tokens first, first + 1, ... as many as fill `out`. Throws InputError where one is outside the vocabulary.
  void read(Index first, std::span<std::int32_t> out) const;

  /// Where documents begin among the tokens first .. last - 1, ascending. Documents without tokens are passed over.
  std::vector<Index> document_starts(Index first, Index last) const;

  /// The token at which document i begins, 0 <= i <= documents(); the last is the number of tokens.
  Index document_offset(Index i) const;

  /// Scored tasks: [examples, length] inputs and targets (-1: not scored).
  bool is_scored() const { return length_ > 0; }
  Index examples() const { return length_ > 0 ? tokens_ / length_ : 0; }
  Index length() const { return length_; }
  void read_examples(Index first, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const;
  /// Places of the tokens that answer examples; empty where the file does not say.
  std::vector<std::int32_t> read_sources() const;

 private:
  friend class Dataset;
  struct Held;
  Split(std::shared_ptr<const H5Reader> file, const std::string& name, Index vocab, std::uint64_t memory);
  template <typename T>
  void widen(const std::string& path, std::vector<T>& held, std::uint64_t first, std::span<std::int32_t> out) const;
  void read_tokens(const std::string& path, std::uint64_t first, std::span<std::int32_t> out) const;
  Index first_document_from(Index token) const;

  std::shared_ptr<const H5Reader> file_;
  std::string name_;
  std::string tokens_path_;
  Index vocab_;
  std::uint64_t memory_;
  Index tokens_ = 0;
  Index documents_ = 0;
  Index length_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t words_ = 0;
  std::shared_ptr<Held> held_;
};

/// An open dataset. Opening checks its structure and digest; data is checked as it is read.
class Dataset {
 public:
  /// Splits of at most `memory` bytes are held in memory once they are read.
  static constexpr std::uint64_t kMemory = std::uint64_t{512} << 20;

  explicit Dataset(const std::string& path, std::uint64_t memory = kMemory);
  explicit Dataset(InputFile input, std::uint64_t memory = kMemory);
  explicit Dataset(std::shared_ptr<const H5Reader> file, std::uint64_t memory = kMemory);

  const std::string& name() const { return file_->name(); }
  const TokenizerData& tokenizer() const { return tokenizer_; }
  Index vocab() const { return vocab_; }

  /// Names, sorted; whether there is one; and the split itself (InputError naming those there are).
  std::vector<std::string> split_names() const;
  bool has_split(const std::string& name) const { return splits_.contains(name); }
  const Split& split(const std::string& name) const;

  /// The digest of tokenizer and splits, 32 hexadecimal digits: the same whenever and by whomever the file was made.
  const std::string& digest() const { return digest_; }

  Provenance provenance() const { return read_provenance(*file_); }
  const H5Reader& file() const { return *file_; }

 private:
  std::shared_ptr<const H5Reader> file_;
  TokenizerData tokenizer_;
  Index vocab_ = 0;
  std::map<std::string, Split> splits_;
  std::string digest_;
};

}  // namespace quipu
