#include "store/text_dataset.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/digest.h"
#include "base/file_system.h"
#include "store/dataset_file.h"
#include "store/model_file.h"
#include "text/corpus_divider.h"
#include "text/text_reader.h"
#include "text/tokenizer_file.h"
#include "text/tokenizer_trainer.h"

namespace quipu {
namespace {

constexpr std::array kTokenizerKinds = {"bytes", "words", "bpe", "unigram"};

/// A text that may have to be read several times: a file is opened anew, a pipe kept.
class TextInput {
 public:
  explicit TextInput(std::string path) : path_(std::move(path)) {
    std::error_code ignored;
    is_pipe_ = path_ == "-" || own_descriptor(path_) >= 0 || !std::filesystem::is_regular_file(path_, ignored);
  }

  const std::string& path() const { return path_; }

  TextReader open(bool again_later) {
    if (!is_pipe_) return TextReader(path_);
    if (kept_) {
      kept_->rewind();
    } else {
      kept_ = std::make_shared<InputFile>(path_);
      if (again_later) kept_->make_seekable();
    }
    return TextReader(kept_);
  }

 private:
  std::string path_;
  bool is_pipe_;
  std::shared_ptr<InputFile> kept_;
};

/// Hands documents on and sees all of their text.
class Observer final : public DocumentSink {
 public:
  Observer(DocumentSink& sink, std::function<void(std::string_view)> see) : sink_(sink), see_(std::move(see)) {}
  void text(std::string_view block) override {
    see_(block);
    sink_.text(block);
  }
  void end_document() override { sink_.end_document(); }

 private:
  DocumentSink& sink_;
  std::function<void(std::string_view)> see_;
};

class Nowhere final : public DocumentSink {
 public:
  void text(std::string_view /*block*/) override {}
  void end_document() override {}
};

/// Puts encoded documents into a split.
class SplitEncoder {
 public:
  SplitEncoder(const Tokenizer& tokenizer, SplitWriter& split)
      : split_(split), encoder_(tokenizer, [this](auto tokens, auto ends) { write(tokens, ends); }) {}

  DocumentSink& sink() { return encoder_; }

  SplitSummary finish() {
    const SplitSummary summary = encoder_.finish();
    split_.add_counts(summary.bytes, summary.words);
    return summary;
  }

 private:
  void write(std::span<const std::int32_t> tokens, std::span<const std::uint64_t> ends) {
    std::uint64_t at = written_;
    for (const std::uint64_t end : ends) {
      split_.append(tokens.subspan(at - written_, end - at));
      split_.end_document();
      at = end;
    }
    split_.append(tokens.subspan(at - written_));
    written_ += tokens.size();
  }

  SplitWriter& split_;
  std::uint64_t written_ = 0;
  CorpusEncoder encoder_;
};

class Builder {
 public:
  explicit Builder(const TextDatasetSpec& spec) : spec_(spec) {
    check();
    for (const auto& [name, files] : spec.splits)
      for (const std::string& file : files) inputs_[name == "train" ? 0 : 1].emplace_back(name, TextInput(file));
    has_shares_ = spec.valid_share > 0 || spec.test_share > 0;
  }

  TextDatasetSummary run();

 private:
  using NamedInput = std::pair<std::string, TextInput>;

  void check() const;
  void check_files() const;
  std::unique_ptr<Tokenizer> find_tokenizer();
  void read(NamedInput& input, bool again_later, const char* stage, DocumentSink& sink,
            const std::function<void(std::string_view)>& see = {});
  /// The training text: to `sinks`, by its shares, or all of it to the first.
  void read_training(bool again_later, const char* stage, std::array<DocumentSink*, 3> sinks, DatasetWriter* writer);
  void count();
  void read_digested(NamedInput& input, DocumentSink& sink, DatasetWriter& writer);

  const TextDatasetSpec& spec_;
  std::array<std::vector<NamedInput>, 2> inputs_;  // of the training split, and of the others
  bool has_shares_ = false;
  std::uint64_t training_bytes_ = 0;
  std::uint64_t bytes_done_ = 0;
};

void Builder::check() const {
  if (spec_.valid_share + spec_.test_share >= 1)
    throw UsageError("--valid {} and --test {}: leave nothing to train on; together they must stay below 1",
                     spec_.valid_share, spec_.test_share);
  bool has_training = false;
  for (const auto& [name, files] : spec_.splits) {
    has_training = has_training || name == "train";
    const bool shared = (name == "valid" && spec_.valid_share > 0) || (name == "test" && spec_.test_share > 0);
    if (shared) throw UsageError("split {}: is both a share of the training text and a file; give one", name);
  }
  if (!has_training) throw UsageError("FILE: there is no training text; give a text file");
  check_files();
}

void Builder::check_files() const {
  int streams = 0;
  for (const auto& [name, files] : spec_.splits)
    for (const std::string& file : files) {
      std::error_code ignored;
      streams += file == "-" ? 1 : 0;
      if (is_same_file(file, spec_.output))
        throw InputError("{}: is both the text and the output; choose another name for the dataset", file);
      if (file != "-" && !std::filesystem::exists(file, ignored))
        throw InputError("{}: cannot read: there is no such file; check the name", file);
    }
  if (streams > 1) throw UsageError("-: stands for stdin {} times; give it once", streams);
}

void Builder::read(NamedInput& input, bool again_later, const char* stage, DocumentSink& sink,
                   const std::function<void(std::string_view)>& see) {
  Observer observer(sink, [&](std::string_view block) {
    bytes_done_ += block.size();
    if (see) see(block);
    if (spec_.on_progress) spec_.on_progress(stage, bytes_done_);
  });
  TextReader reader = input.second.open(again_later);
  read_documents(reader, spec_.documents, observer);
}

void Builder::read_digested(NamedInput& input, DocumentSink& sink, DatasetWriter& writer) {
  Digester digester;
  read(input, false, "encode", sink, [&](std::string_view block) { digester.update(block); });
  writer.add_data(fmt::format("{} {}", digester.finish().hex(), input.second.path()));
}

void Builder::read_training(bool again_later, const char* stage, std::array<DocumentSink*, 3> sinks,
                            DatasetWriter* writer) {
  std::optional<CorpusDivider> divider;
  const auto cut = spec_.documents == DocumentRule::kFile ? CorpusDivider::Cut::kInside : CorpusDivider::Cut::kAfter;
  if (has_shares_)
    divider.emplace(std::vector<CorpusDivider::Share>{{sinks[0], 1 - spec_.valid_share - spec_.test_share},
                                                      {sinks[1], spec_.valid_share},
                                                      {sinks[2], spec_.test_share}},
                    training_bytes_, cut);
  DocumentSink& sink = divider ? static_cast<DocumentSink&>(*divider) : *sinks[0];
  bytes_done_ = 0;
  for (NamedInput& input : inputs_[0]) {
    if (writer != nullptr)
      read_digested(input, sink, *writer);
    else
      read(input, again_later, stage, sink);
  }
}

void Builder::count() {
  Nowhere nowhere;
  bytes_done_ = 0;
  for (NamedInput& input : inputs_[0]) read(input, true, "count", nowhere);
  training_bytes_ = bytes_done_;
}

std::unique_ptr<Tokenizer> Builder::find_tokenizer() {
  const std::string& name = spec_.tokenizer;
  const std::string kind = name.substr(0, name.find(':'));
  const bool is_kind = std::ranges::find(kTokenizerKinds, kind) != kTokenizerKinds.end();
  std::error_code ignored;
  if (!is_kind && (kind == "gpt2" || std::filesystem::exists(name, ignored))) return load_tokenizer(name);
  const std::unique_ptr<TokenizerTrainer> trainer = make_trainer(parse_tokenizer_spec(name));
  Nowhere nowhere;
  if (trainer->needs_text()) read_training(true, "learn", {trainer.get(), &nowhere, &nowhere}, nullptr);
  return trainer->finish();
}

TextDatasetSummary Builder::run() {
  if (has_shares_) count();
  const std::unique_ptr<Tokenizer> tokenizer = find_tokenizer();
  if (spec_.special_tokens) tokenizer->use_special_tokens();
  DatasetWriter writer(spec_.output, tokenizer->serialize(), tokenizer->vocab_size(), {spec_.commands, {}});
  std::vector<std::pair<std::string, std::unique_ptr<SplitEncoder>>> encoders;
  const auto encoder = [&](const std::string& name) -> SplitEncoder& {
    for (const auto& [known, made] : encoders)
      if (known == name) return *made;
    return *encoders.emplace_back(name, std::make_unique<SplitEncoder>(*tokenizer, writer.split(name))).second;
  };
  Nowhere nowhere;
  DocumentSink& train = encoder("train").sink();
  DocumentSink& valid = spec_.valid_share > 0 ? encoder("valid").sink() : nowhere;
  DocumentSink& test = spec_.test_share > 0 ? encoder("test").sink() : nowhere;
  read_training(false, "encode", {&train, &valid, &test}, &writer);
  for (NamedInput& input : inputs_[1]) read_digested(input, encoder(input.first).sink(), writer);

  TextDatasetSummary summary{describe(*tokenizer), tokenizer->vocab_size(), {}};
  for (const auto& [name, made] : encoders) {
    summary.splits.emplace_back(name, made->finish());
    if (summary.splits.back().second.tokens == 0)
      throw InputError("{}: the split {} has no token; give it more text", spec_.output, name);
  }
  writer.commit();
  return summary;
}

}  // namespace

TextDatasetSummary make_text_dataset(const TextDatasetSpec& spec) { return Builder(spec).run(); }

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(path, ignored);
  if (!is_file || !InputFile(path).is_hdf5()) return read_tokenizer_file(path);
  const auto file = std::make_shared<const H5Reader>(path, std::vector{kDatasetFormat, kCheckpointFormat});
  return make_tokenizer(read_tokenizer(*file, "/tokenizer"));
}

}  // namespace quipu
