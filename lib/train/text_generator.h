#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
#include "text/utf8_stream.h"
#include "train/generator.h"

namespace quipu {

/// Gives the next bytes of a text: as many as fit, or fewer; 0 at its end.
using TextSource = std::function<std::size_t(std::span<char>)>;
/// A text file (or gzip; - is standard input). Throws InputError where it cannot be read or is empty.
TextSource text_of_file(const std::string& path);
TextSource text_of(std::string text);

/// Called while a text is read, whenever the stream has grown to a multiple of `every` tokens; 0: never.
struct ReadMarks {
  std::int64_t every = 0;
  std::function<void()> reached;
};

/// Takes a piece of text (not empty, in whole characters) that is to be shown.
using TextSink = std::function<void(std::string_view)>;

/// Why text came to its end; `stop_request`: by a signal or a time limit.
enum class TextEnd { tokens, stop_text, end_of_document, stop_request };
const char* name_of(TextEnd end);

struct TextOptions {
  std::int64_t tokens = 256;       ///< at most
  std::vector<std::string> stops;  ///< see StopText; they are not shown
};

/// What reading or making a text came to.
struct TextOutcome {
  std::int64_t tokens = 0;
  double seconds = 0;
  TextEnd end = TextEnd::tokens;
  double tokens_per_s() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

inline namespace QUIPU_REAL_NS {

/// A stream of tokens as text.
class TextGenerator {
 public:
  /// Model and tokenizer must outlive it. Throws InputError where their vocabularies differ.
  TextGenerator(const SequenceModel& model, const Tokenizer& tokenizer, const SamplingOptions& options);

  /// Goes on from a saved stream. Throws InputError for another model's state.
  void load(const std::string& path, const std::string& parameter_digest);
  /// Saves the stream, bound to the model by the digest of its parameters, with the beginning of a character that was
  /// made and not yet shown. At a mark of `read` it is the state of a stream that ends there, to the last bit, but that
  /// no beginning of a character of the text being read is in it.
  void save(const std::string& path, const std::string& parameter_digest, const std::string& command);

  /// Reads a text as one piece, at constant memory, and hands it to `echo` where there is one. Ends early, within a
  /// chunk, when a stop is requested.
  TextOutcome read(const TextSource& source, const TextSink& echo = {}, const ReadMarks& marks = {});
  /// Makes text and hands it to `sink` token by token; the beginning of a character is held back for the next call. A
  /// stream without any token first reads the token that ends documents, or else a newline.
  TextOutcome generate(const TextOptions& options, const TextSink& sink);

  const Generator& generator() const { return generator_; }

 private:
  std::string open_text();
  void show(std::string_view bytes, const TextSink& sink);
  std::int64_t read_tokens(std::span<const std::int32_t> tokens, const ReadMarks& marks);

  const SequenceModel& model_;
  const Tokenizer& tokenizer_;
  Generator generator_;
  Utf8Stream characters_;
  std::optional<std::string> open_before_;  // while a text is read: the beginning of a character that was there before
};

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
