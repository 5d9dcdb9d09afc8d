#include <algorithm>

#include "store/dataset_file.h"

namespace quipu {

namespace {

constexpr Index kNarrowVocab = Index{1} << 16;
constexpr Index kMostVocab = Index{1} << 31;

/// A split's name is its group's path: one or more plain names, none of them reserved.
void check_split_name(const std::string& name) {
  const std::string first = name.substr(0, name.find('/'));
  const bool reserved = first == "tokenizer" || first == "provenance" || first == "digests" || first == "task";
  const bool plain = std::ranges::all_of(name, [](unsigned char c) {
    return c == '/' || c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z') || c >= 0x80;
  });
  const bool empty_part = name.empty() || name.front() == '/' || name.back() == '/' || name.find("//") < name.size();
  if (reserved || !plain || empty_part) {
    throw UsageError("split '{}': cannot be a name; use letters, digits, '-' and '_'", name);
  }
}

}  // namespace

SplitWriter::SplitWriter(H5Writer& file, const std::string& path, Index vocab)
    : file_(file),
      path_(path),
      vocab_(vocab),
      type_(vocab <= kNarrowVocab ? ElementType::kUInt16 : ElementType::kUInt32) {
  file_.group(path_);
}

void SplitWriter::write_tokens(H5Stream& stream, std::span<const std::int32_t> tokens) {
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= vocab_) {
      throw InputError("{}: token id {} is outside the vocabulary (size {})", path_, token, vocab_);
    }
  }
  if (type_ == ElementType::kUInt32) {
    stream.append(std::span(reinterpret_cast<const std::uint32_t*>(tokens.data()), tokens.size()));
    return;
  }
  std::vector<std::uint16_t> narrow(tokens.size());
  std::ranges::transform(tokens, narrow.begin(), [](std::int32_t token) { return static_cast<std::uint16_t>(token); });
  stream.append(std::span<const std::uint16_t>(narrow));
}

void SplitWriter::begin_tokens() {
  if (inputs_ != nullptr) throw InternalError("{}: has both tokens and examples", path_);
  if (tokens_ != nullptr) return;
  tokens_ = &file_.stream(path_ + "/tokens", type_);
  documents_ = &file_.stream(path_ + "/documents", ElementType::kUInt64);
  const std::uint64_t start = 0;
  documents_->append(std::span(&start, 1));
}

void SplitWriter::append(std::span<const std::int32_t> tokens) {
  begin_tokens();
  write_tokens(*tokens_, tokens);
}

void SplitWriter::end_document() {
  begin_tokens();
  last_end_ = tokens_->rows();
  documents_->append(std::span<const std::uint64_t>(&last_end_, 1));
  counter_.end_word();
}

void SplitWriter::add_counts(std::uint64_t bytes, std::uint64_t words) {
  more_bytes_ += bytes;
  more_words_ += words;
}

void SplitWriter::append_examples(std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets,
                                  Index length) {
  if (tokens_ != nullptr) throw InternalError("{}: has both tokens and examples", path_);
  if (length < 1 || (length_ != 0 && length != length_)) {
    throw ShapeError("{}: an example has length {}, the first {}", path_, length, length_);
  }
  if (inputs.size() != targets.size() || inputs.size() % static_cast<std::size_t>(length) != 0) {
    throw ShapeError("{}: {} inputs and {} targets are no examples of length {}", path_, inputs.size(), targets.size(),
                     length);
  }
  if (inputs_ == nullptr) {
    length_ = length;
    const H5Shape row = {static_cast<std::uint64_t>(length)};
    inputs_ = &file_.stream(path_ + "/inputs", type_, row);
    targets_ = &file_.stream(path_ + "/targets", ElementType::kInt32, row);
  }
  for (const std::int32_t target : targets) {
    if (target < -1 || target >= vocab_) {
      throw InputError("{}: target {} is outside the vocabulary (size {})", path_, target, vocab_);
    }
  }
  write_tokens(*inputs_, inputs);
  targets_->append(targets);
}

void SplitWriter::append_sources(std::span<const std::int32_t> sources) {
  if (sources_ == nullptr) sources_ = &file_.stream(path_ + "/sources", ElementType::kInt32);
  sources_->append(sources);
}

void SplitWriter::finish() {
  if (inputs_ == nullptr) begin_tokens();
  if (tokens_ != nullptr && tokens_->rows() > last_end_) end_document();
  file_.attribute(path_, "bytes", counter_.bytes() + more_bytes_);
  file_.attribute(path_, "words", counter_.words() + more_words_);
}

DatasetWriter::DatasetWriter(const std::string& path, const TokenizerData& tokenizer, Index vocab,
                             const Provenance& provenance, const std::string& created)
    : file_(path, kDatasetFormat, created), vocab_(vocab), provenance_(provenance) {
  if (vocab < 1 || vocab > kMostVocab) throw InputError("{}: a vocabulary of {} does not fit 31 bits", path, vocab);
  write_tokenizer(file_, "/tokenizer", tokenizer);
  file_.attribute("/tokenizer", "vocab", vocab);
}

SplitWriter& DatasetWriter::split(const std::string& name) {
  auto& split = splits_[name];
  if (!split) {
    check_split_name(name);
    split.reset(new SplitWriter(file_, "/" + name, vocab_));
  }
  return *split;
}

void DatasetWriter::task_fact(const std::string& name, const H5Value& value) {
  if (!file_.has("/task")) file_.group("/task");
  file_.attribute("/task", name, value);
}

void DatasetWriter::commit() {
  for (auto& [name, split] : splits_) split->finish();
  write_provenance(file_, provenance_);
  file_.commit();
}

}  // namespace quipu
