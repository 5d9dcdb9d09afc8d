#include "train/text_generator.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/stop.h"
#include "base/stopwatch.h"
#include "text/text_reader.h"
#include "train/stop_text.h"
#include "train/stream_file.h"

namespace quipu {
namespace {

constexpr std::size_t kBlockBytes = 1 << 14;

std::vector<std::int32_t> start_tokens(const Tokenizer& tokenizer) {
  if (const auto end = tokenizer.end_of_document()) return {*end};
  return tokenizer.encode("\n");
}

}  // namespace

TextSource text_of_file(const std::string& path) {
  return [reader = std::make_shared<TextReader>(path)](std::span<char> block) { return reader->read(block); };
}

TextSource text_of(std::string text) {
  return [text = std::move(text), given = std::size_t{0}](std::span<char> block) mutable {
    const std::size_t taken = text.copy(block.data(), block.size(), given);
    given += taken;
    return taken;
  };
}

const char* name_of(TextEnd end) {
  switch (end) {
    case TextEnd::tokens:
      return "tokens";
    case TextEnd::stop_text:
      return "stop_text";
    case TextEnd::end_of_document:
      return "end_of_document";
    case TextEnd::stop_request:
      return "stop_request";
  }
  return "";
}

inline namespace QUIPU_REAL_NS {

TextGenerator::TextGenerator(const SequenceModel& model, const Tokenizer& tokenizer, const SamplingOptions& options)
    : model_(model), tokenizer_(tokenizer), generator_(model, options, Generator::kChunk, tokenizer.vocab_size()) {
  if (model.vocab() < tokenizer.vocab_size())
    throw InputError("model: has a vocabulary of {} tokens, its tokenizer {}; the checkpoint is not whole",
                     model.vocab(), tokenizer.vocab_size());
}

void TextGenerator::load(const std::string& path, const std::string& parameter_digest) {
  std::string open_text;
  generator_.resume(from_saved(load_state(path, parameter_digest), model_, path, open_text));
  characters_ = Utf8Stream();
  characters_.push(open_text);
}

void TextGenerator::save(const std::string& path, const std::string& parameter_digest, const std::string& command) {
  SavedState saved = to_saved(generator_.state_ahead(), parameter_digest, open_before_.value_or(open_text()));
  saved.provenance.commands = {command};
  save_state(path, saved);
}

std::string TextGenerator::open_text() {
  const std::string open = characters_.flush();
  characters_.push(open);
  return open;
}

void TextGenerator::show(std::string_view bytes, const TextSink& sink) {
  const std::string whole = characters_.push(bytes);
  if (!whole.empty()) sink(whole);
}

/// Returns how many were read before a stop was requested.
std::int64_t TextGenerator::read_tokens(std::span<const std::int32_t> tokens, const ReadMarks& marks) {
  std::size_t read = 0;
  while (read < tokens.size() && !stop_requested()) {
    std::int64_t step = Generator::kChunk;
    if (marks.every > 0) step = std::min(step, marks.every - generator_.tokens() % marks.every);
    const auto part = tokens.subspan(read, std::min(static_cast<std::size_t>(step), tokens.size() - read));
    generator_.read(part);
    read += part.size();
    if (marks.every > 0 && generator_.tokens() % marks.every == 0) marks.reached();
  }
  return static_cast<std::int64_t>(read);
}

TextOutcome TextGenerator::read(const TextSource& source, const TextSink& echo, const ReadMarks& marks) {
  TextOutcome outcome;
  const Stopwatch watch;
  open_before_ = open_text();
  std::string text;  // not yet encoded
  std::vector<std::int32_t> tokens;
  bool complete = false, begins = generator_.tokens() == 0;
  while (!complete && !stop_requested()) {
    const std::size_t old = text.size();
    text.resize(old + kBlockBytes);
    const std::size_t got = source(std::span(text).subspan(old));
    text.resize(old + got);
    complete = got == 0;
    if (echo) show(std::string_view(text).substr(old), echo);
    tokens.clear();
    const std::size_t taken = tokenizer_.encode_some(text, {begins, complete}, tokens);
    text.erase(0, taken);
    begins = begins && taken == 0;
    outcome.tokens += read_tokens(tokens, marks);
  }
  generator_.end_piece();
  open_before_.reset();
  if (stop_requested()) outcome.end = TextEnd::stop_request;
  outcome.seconds = watch.seconds();
  return outcome;
}

TextOutcome TextGenerator::generate(const TextOptions& options, const TextSink& sink) {
  TextOutcome made;
  StopText stop(options.stops);
  const auto end_of_document = tokenizer_.end_of_document();
  if (generator_.tokens() == 0 && options.tokens > 0) generator_.read(start_tokens(tokenizer_));
  const Stopwatch watch;
  std::string bytes;
  while (made.end == TextEnd::tokens && made.tokens < options.tokens) {
    if (stop_requested()) {
      made.end = TextEnd::stop_request;
      break;
    }
    const std::int32_t previous = generator_.last_token(), token = generator_.next();
    ++made.tokens;
    if (token == end_of_document) {
      made.end = TextEnd::end_of_document;
      break;
    }
    bytes.clear();
    tokenizer_.append_text(previous, token, bytes);
    show(stop.push(bytes), sink);
    if (stop.found()) made.end = TextEnd::stop_text;
  }
  show(stop.flush(), sink);
  made.seconds = watch.seconds();
  return made;
}

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
