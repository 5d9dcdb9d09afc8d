#pragma once
#include <cstdint>
#include <functional>
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
  /// made and not yet shown.
  void save(const std::string& path, const std::string& parameter_digest, const std::string& command);

  /// Reads a text as one piece, at constant memory, and hands it to `echo` where there is one. Ends early, within some
  /// hundred tokens, when a stop is requested.
  TextOutcome read(const TextSource& source, const TextSink& echo = {});
  /// Makes text and hands it to `sink` token by token; the beginning of a character is held back for the next call. A
  /// stream without any token first reads the token that ends documents, or else a newline.
  TextOutcome generate(const TextOptions& options, const TextSink& sink);

  const Generator& generator() const { return generator_; }

 private:
  void show(std::string_view bytes, const TextSink& sink);
  std::int64_t read_tokens(std::span<const std::int32_t> tokens);

  const SequenceModel& model_;
  const Tokenizer& tokenizer_;
  Generator generator_;
  Utf8Stream characters_;
};

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
