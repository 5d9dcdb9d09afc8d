#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/corpus.h"
#include "text/tokenizer.h"

namespace quipu {

/// What a split of a dataset holds; bytes and words are those of the original text (see TextCounter).
struct SplitSummary {
  std::uint64_t tokens = 0;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  std::uint64_t words = 0;
};

/// Takes the tokens of a split in order, about a million at a time. `document_ends`: for each document that ends in
/// them, the number of tokens of the split up to its end (so 0 and all the ends are the D+1 offsets of documents).
using TokenBlocks =
    std::function<void(std::span<const std::int32_t> tokens, std::span<const std::uint64_t> document_ends)>;

/// Encodes documents as they come, on all threads (OpenMP), in bounded memory; the result does not depend on blocks or
/// threads and equals encoding each document whole. A document whose text has no token (`words`, only blanks) is kept.
class CorpusEncoder final : public DocumentSink {
 public:
  /// The tokenizer must outlive the encoder. `blocks` is called on the calling thread only.
  CorpusEncoder(const Tokenizer& tokenizer, TokenBlocks blocks);

  void text(std::string_view block) override;
  void end_document() override;

  /// Sends the last tokens; nothing may come after. InternalError where a document is still open.
  SplitSummary finish();

 private:
  struct Task;

  std::vector<Task> cut_into_tasks() const;
  void add_document(std::size_t begin, std::size_t end, bool begins, bool closed, std::vector<Task>& tasks) const;
  void encode_task(Task& task) const;
  void encode_buffer();
  void send(const std::vector<Task>& tasks);

  const Tokenizer& tokenizer_;
  TokenBlocks blocks_;
  TextCounter counter_;
  std::uint64_t tokens_ = 0;
  std::string buffer_;             // text that is not encoded yet
  std::vector<std::size_t> ends_;  // where documents end in it
  std::size_t left_bytes_ = 0;     // what the last call of encode_buffer had to leave in it
  bool open_ = false;              // a document has begun and not ended
  bool inside_ = false;            // ... of which the buffer no longer has the beginning
};

/// Reads and encodes text files, one after another. InputError as TextReader.
SplitSummary encode_files(const Tokenizer& tokenizer, std::span<const std::string> paths, DocumentRule rule,
                          const TokenBlocks& blocks);

}  // namespace quipu
