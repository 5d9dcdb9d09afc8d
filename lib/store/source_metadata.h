#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/tokenizer_data.h"

namespace quipu {

/// A long list among a file's metadata (a GGUF file's vocabulary), still in the file's bytes.
class MetadataArray {
 public:
  /// GGUF's numbers of the types that elements can have.
  enum class Element : std::uint8_t {
    kU8 = 0,
    kI8 = 1,
    kU16 = 2,
    kI16 = 3,
    kU32 = 4,
    kI32 = 5,
    kF32 = 6,
    kBool = 7,
    kString = 8,
    kU64 = 10,
    kI64 = 11,
    kF64 = 12,
  };

  /// `bytes`: the elements as GGUF stores them (checked: strings are a 64-bit length and bytes). They must outlive
  /// this.
  MetadataArray(Element element, std::uint64_t size, std::span<const std::byte> bytes)
      : element_(element), size_(size), bytes_(bytes) {}

  Element element() const { return element_; }
  std::uint64_t size() const { return size_; }

  /// All elements. Throw InputError where they are numbers instead of strings, or the other way round.
  std::vector<std::string> strings() const;
  std::vector<double> numbers() const;

 private:
  Element element_;
  std::uint64_t size_;
  std::span<const std::byte> bytes_;
};

using MetadataValue = std::variant<bool, std::int64_t, double, std::string, MetadataArray>;

/// What stands in and beside a file of tensors. Valid as long as its source is.
struct SourceMetadata {
  /// Single values: __metadata__ of safetensors, the numbers of a ggmf header (n_vocab, n_embed, n_layer, ...), GGUF's
  /// key-values (general.architecture, tokenizer.ggml.tokens, ...), numbers and texts among PyTorch's tensors by their
  /// path. At most `kMostValues`; `left_out` says how many more there were.
  std::vector<std::pair<std::string, MetadataValue>> values;
  std::uint64_t left_out = 0;

  /// Whole texts by name: "config.json" beside the file (valid JSON, nested less than 64 deep), "config" in a
  /// checkpoint of ours.
  std::vector<std::pair<std::string, std::string>> texts;

  /// Files beside the tensors that belong to the model, by name ("tokenizer.json", "vocab.json"), with their paths.
  std::vector<std::pair<std::string, std::string>> companions;

  /// The tokenizer of a checkpoint of ours.
  std::optional<TokenizerData> tokenizer;

  /// nullptr where there is none of that name.
  const MetadataValue* find(std::string_view key) const;
  const std::string* find_text(std::string_view name) const;

  static constexpr std::size_t kMostValues = 4096;

  /// Adds a value, or counts it as left out where there are too many.
  void add(std::string key, MetadataValue value);
};

}  // namespace quipu
