#include "store/dataset_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "base/file_system.h"

namespace quipu {

/// What is held of a small split; filled by the first read.
struct Split::Held {
  std::mutex mutex;
  std::vector<std::uint16_t> narrow;
  std::vector<std::uint32_t> wide;
  std::vector<std::uint64_t> documents;
};

namespace {

/// The tokens of a dataset's group: `tokens` of a stream, `inputs` of a scored task.
std::string tokens_path_of(const H5Reader& file, const std::string& group) {
  return file.has(group + "/inputs") ? group + "/inputs" : group + "/tokens";
}

}  // namespace

Split::Split(std::shared_ptr<const H5Reader> file, const std::string& name, Index vocab, std::uint64_t memory)
    : file_(std::move(file)),
      name_(name),
      tokens_path_(tokens_path_of(*file_, "/" + name)),
      vocab_(vocab),
      memory_(memory),
      held_(std::make_shared<Held>()) {
  const std::string group = "/" + name;
  bytes_ = file_->unsigned_attribute(group, "bytes");
  words_ = file_->unsigned_attribute(group, "words");
  const H5Entry& tokens = file_->entry(tokens_path_);
  tokens_ = static_cast<Index>(tokens.elements());
  const bool token_type = tokens.type == ElementType::kUInt16 || tokens.type == ElementType::kUInt32;
  const bool scored = tokens_path_ == group + "/inputs";
  if (!token_type || tokens.shape.size() != (scored ? 2 : 1)) {
    throw InputError("{}: {} has not the type or shape of tokens", file_->name(), tokens_path_);
  }
  if (scored) {
    length_ = static_cast<Index>(tokens.shape[1]);
    const H5Entry& targets = file_->entry(group + "/targets");
    if (targets.type != ElementType::kInt32 || targets.shape != tokens.shape || length_ < 1) {
      throw InputError("{}: the targets of {} do not fit its inputs", file_->name(), name);
    }
    return;
  }
  const H5Entry& documents = file_->entry(group + "/documents");
  if (documents.type != ElementType::kUInt64 || documents.shape.size() != 1 || documents.shape[0] < 1) {
    throw InputError("{}: the documents of {} are no list of offsets", file_->name(), name);
  }
  documents_ = static_cast<Index>(documents.shape[0]) - 1;
  if (document_offset(0) != 0 || document_offset(documents_) != tokens_) {
    throw InputError("{}: the documents of {} run from {} to {}, its tokens from 0 to {}", file_->name(), name,
                     document_offset(0), document_offset(documents_), tokens_);
  }
}

template <typename T>
void Split::widen(const std::string& path, std::vector<T>& held, std::uint64_t first,
                  std::span<std::int32_t> out) const {
  const H5Entry& entry = file_->entry(path);
  std::vector<T> piece;
  std::span<const T> tokens;
  const std::uint64_t row = length_ > 0 ? static_cast<std::uint64_t>(length_) : 1;
  if (entry.bytes() <= memory_) {
    const std::lock_guard guard(held_->mutex);
    if (held.empty()) held = file_->read<T>(path);
    tokens = std::span<const T>(held).subspan(first, out.size());
  } else {
    piece.resize(out.size());
    file_->read_rows<T>(path, first / row, piece);
    tokens = piece;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto token = static_cast<std::int64_t>(tokens[i]);
    if (token >= vocab_) {
      throw InputError("{}: token id {} is outside the vocabulary (size {}); make the dataset again", file_->name(),
                       token, vocab_);
    }
    out[i] = static_cast<std::int32_t>(token);
  }
}

void Split::read_tokens(const std::string& path, std::uint64_t first, std::span<std::int32_t> out) const {
  if (out.empty()) return;
  if (file_->entry(path).type == ElementType::kUInt16) {
    widen(path, held_->narrow, first, out);
  } else {
    widen(path, held_->wide, first, out);
  }
}

void Split::read(Index first, std::span<std::int32_t> out) const {
  const auto count = static_cast<Index>(out.size());
  if (is_scored()) throw InputError("{}: {} holds scored examples, not a text", file_->name(), name_);
  if (first < 0 || first > tokens_ || count > tokens_ - first) {
    throw ShapeError("{}: {} has {} tokens, asked for {} to {}", file_->name(), name_, tokens_, first, first + count);
  }
  read_tokens(tokens_path_, static_cast<std::uint64_t>(first), out);
}

Index Split::document_offset(Index i) const {
  if (i < 0 || i > documents_) throw ShapeError("{}: {} has {} documents, not {}", file_->name(), name_, documents_, i);
  const std::string path = "/" + name_ + "/documents";
  const auto at = static_cast<std::uint64_t>(i);
  std::uint64_t offset = 0;
  if (file_->entry(path).bytes() <= memory_) {
    const std::lock_guard guard(held_->mutex);
    if (held_->documents.empty()) held_->documents = file_->read<std::uint64_t>(path);
    offset = held_->documents[at];
  } else {
    file_->read_rows<std::uint64_t>(path, at, std::span(&offset, 1));
  }
  if (offset > static_cast<std::uint64_t>(tokens_)) {
    throw InputError("{}: document {} of {} begins at {}, beyond its {} tokens", file_->name(), i, name_, offset,
                     tokens_);
  }
  return static_cast<Index>(offset);
}

/// The first document that begins at a token or later; documents() + 1 where there is none.
Index Split::first_document_from(Index token) const {
  Index low = 0;
  Index high = documents_ + 1;
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (document_offset(middle) < token) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::vector<Index> Split::document_starts(Index first, Index last) const {
  std::vector<Index> starts;
  for (Index i = first_document_from(first); i < documents_; ++i) {
    const Index start = document_offset(i);
    if (start >= last) break;
    if (start < document_offset(i + 1)) starts.push_back(start);
  }
  return starts;
}

void Split::read_examples(Index first, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const {
  const auto count = static_cast<Index>(inputs.size()) / std::max<Index>(length_, 1);
  if (!is_scored()) throw InputError("{}: {} holds a text, not scored examples", file_->name(), name_);
  if (inputs.size() != targets.size() || count * length_ != static_cast<Index>(inputs.size()) || first < 0 ||
      first > examples() || count > examples() - first) {
    throw ShapeError("{}: {} has {} examples, asked for {} to {}", file_->name(), name_, examples(), first,
                     first + count);
  }
  read_tokens(tokens_path_, static_cast<std::uint64_t>(first * length_), inputs);
  file_->read_rows<std::int32_t>("/" + name_ + "/targets", static_cast<std::uint64_t>(first), targets);
}

std::vector<std::int32_t> Split::read_sources() const {
  const std::string path = "/" + name_ + "/sources";
  if (!file_->has(path)) return {};
  std::vector<std::int32_t> sources = file_->read<std::int32_t>(path);
  if (static_cast<Index>(sources.size()) != examples())
    throw InputError("{}: {} has {} examples and the sources of {}", file_->name(), name_, examples(), sources.size());
  return sources;
}

Dataset::Dataset(const std::string& path, std::uint64_t memory) : Dataset(InputFile(path), memory) {}

Dataset::Dataset(InputFile input, std::uint64_t memory)
    : Dataset(std::make_shared<const H5Reader>(std::move(input), std::vector{kDatasetFormat}), memory) {}

Dataset::Dataset(std::shared_ptr<const H5Reader> file, std::uint64_t memory)
    : file_(std::move(file)),
      tokenizer_(read_tokenizer(*file_, "/tokenizer")),
      vocab_(file_->integer_attribute("/tokenizer", "vocab")) {
  if (vocab_ < 1 || vocab_ > Index{std::numeric_limits<std::int32_t>::max()} + 1) {
    throw InputError("{}: has a vocabulary of {}", file_->name(), vocab_);
  }
  Digester digester;
  digester.update(tokenizer_.kind);
  digester.update(static_cast<std::uint64_t>(vocab_));
  digester.update(subtree_digest(file_->catalogue(), "/tokenizer"));
  for (const auto& [path, entry] : file_->catalogue()) {
    const std::string group = split_path(path).first;
    const bool has_tokens = path == tokens_path_of(*file_, group) && !entry.is_group();
    if (!has_tokens || is_below(path, kH5DigestsGroup) || is_below(path, "/tokenizer")) continue;
    const std::string name = group.substr(1);
    const Split& split = splits_.emplace(name, Split(file_, name, vocab_, memory)).first->second;
    digester.update(name);
    digester.update(split.bytes());
    digester.update(split.words());
    digester.update(subtree_digest(file_->catalogue(), group));
  }
  digest_ = digester.finish().hex();
}

std::vector<std::string> Dataset::split_names() const {
  std::vector<std::string> names;
  for (const auto& [name, split] : splits_) names.push_back(name);
  return names;
}

const Split& Dataset::split(const std::string& name) const {
  const auto at = splits_.find(name);
  if (at == splits_.end()) {
    throw InputError("{}: has no split {}; it has {}", file_->name(), name,
                     splits_.empty() ? "none" : fmt::format("{}", fmt::join(split_names(), ", ")));
  }
  return at->second;
}

}  // namespace quipu
