#include "text/corpus_encoder.h"

#include <exception>
#include <utility>

#include "base/error.h"

namespace quipu {

namespace {

constexpr std::size_t kBufferBytes = 4 << 20;
constexpr std::size_t kTaskBytes = 1 << 16;

}  // namespace

/// Neighbouring stretches of the buffer for one thread, and what became of them.
struct CorpusEncoder::Task {
  struct Stretch {
    std::size_t begin;
    std::size_t end;
    TextPart part;  // whether it ends: its tokens depend on nothing that comes after it
    bool ends_document;
  };
  std::vector<Stretch> stretches;
  std::size_t bytes = 0;

  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> ends;  // of documents, in `tokens`
  std::size_t encoded_to = 0;       // in the buffer
};

CorpusEncoder::CorpusEncoder(const Tokenizer& tokenizer, TokenBlocks blocks)
    : tokenizer_(tokenizer), blocks_(std::move(blocks)) {}

void CorpusEncoder::text(std::string_view block) {
  counter_.text(block);
  open_ = true;
  while (!block.empty()) {
    const std::string_view part = block.substr(0, kBufferBytes);
    buffer_ += part;
    block.remove_prefix(part.size());
    if (buffer_.size() >= kBufferBytes + 2 * left_bytes_) encode_buffer();
  }
}

void CorpusEncoder::end_document() {
  counter_.end_document();
  ends_.push_back(buffer_.size());
  open_ = false;
}

SplitSummary CorpusEncoder::finish() {
  if (open_) throw InternalError("the encoder was finished inside a document");
  encode_buffer();
  return {tokens_, counter_.documents(), counter_.bytes(), counter_.words()};
}

void CorpusEncoder::add_document(std::size_t begin, std::size_t end, bool begins, bool closed,
                                 std::vector<Task>& tasks) const {
  const auto add = [&tasks](const Task::Stretch& stretch) {
    if (tasks.empty() || tasks.back().bytes >= kTaskBytes) tasks.emplace_back();
    tasks.back().stretches.push_back(stretch);
    tasks.back().bytes += stretch.end - stretch.begin;
  };
  while (end - begin > kTaskBytes) {
    const std::size_t cut = tokenizer_.cut_after(std::string_view(buffer_).substr(0, end), begin + kTaskBytes);
    if (cut >= end) break;
    add({begin, cut, {begins, true}, false});
    begin = cut;
    begins = false;
  }
  if (closed || begin < end) add({begin, end, {begins, closed}, closed});
}

std::vector<CorpusEncoder::Task> CorpusEncoder::cut_into_tasks() const {
  std::vector<Task> tasks;
  std::size_t begin = 0;
  bool begins = !inside_;
  for (const std::size_t end : ends_) {
    add_document(begin, end, begins, true, tasks);
    begin = end;
    begins = true;
  }
  add_document(begin, buffer_.size(), begins, false, tasks);
  return tasks;
}

void CorpusEncoder::encode_task(Task& task) const {
  const std::optional<std::int32_t> end_token = tokenizer_.end_of_document();
  for (const Task::Stretch& stretch : task.stretches) {
    const std::string_view text = std::string_view(buffer_).substr(stretch.begin, stretch.end - stretch.begin);
    task.encoded_to = stretch.begin + tokenizer_.encode_some(text, stretch.part, task.tokens);
    if (!stretch.ends_document) continue;
    if (end_token) task.tokens.push_back(*end_token);
    task.ends.push_back(task.tokens.size());
  }
}

void CorpusEncoder::encode_buffer() {
  std::vector<Task> tasks = cut_into_tasks();
  if (tasks.empty()) return;
  std::vector<std::exception_ptr> failures(tasks.size());
  const auto count = static_cast<std::int64_t>(tasks.size());
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    try {
      encode_task(tasks[at]);
    } catch (...) {
      failures[at] = std::current_exception();
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  send(tasks);
  const std::size_t done = tasks.back().encoded_to;
  const std::size_t last_end = ends_.empty() ? 0 : ends_.back();
  inside_ = open_ && (done > last_end || (inside_ && ends_.empty()));
  buffer_.erase(0, done);
  left_bytes_ = buffer_.size();
  ends_.clear();
}

void CorpusEncoder::send(const std::vector<Task>& tasks) {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> ends;
  std::size_t count = 0;
  for (const Task& task : tasks) count += task.tokens.size();
  tokens.reserve(count);
  for (const Task& task : tasks) {
    for (const std::uint64_t end : task.ends) ends.push_back(tokens_ + tokens.size() + end);
    tokens.insert(tokens.end(), task.tokens.begin(), task.tokens.end());
  }
  tokens_ += tokens.size();
  if (!tokens.empty() || !ends.empty()) blocks_(tokens, ends);
}

SplitSummary encode_files(const Tokenizer& tokenizer, std::span<const std::string> paths, DocumentRule rule,
                          const TokenBlocks& blocks) {
  CorpusEncoder encoder(tokenizer, blocks);
  for (const std::string& path : paths) read_documents(path, rule, encoder);
  return encoder.finish();
}

}  // namespace quipu
