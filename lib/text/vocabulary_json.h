#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace quipu {

/// A tokenizer's JSON file, its long lists apart from the rest.
struct VocabularyJson {
  struct Entry {
    std::string spelled;
    std::int64_t id;
  };
  /// Two spelled tokens, one behind the other.
  struct Merge {
    std::string pair;
    std::size_t cut;
    std::string_view left() const { return std::string_view(pair).substr(0, cut); }
    std::string_view right() const { return std::string_view(pair).substr(cut); }
  };

  std::vector<Entry> vocabulary;  ///< the numbers of `model.vocab`, or of the outermost object
  std::vector<Merge> merges;      ///< `model.merges`
  nlohmann::json rest;            ///< everything else; an object
};

/// Splits `left right` as a line of merges has it. InputError, with the number of the merge, where it is not so.
VocabularyJson::Merge read_merge(std::string_view line, std::size_t number);

/// Reads a vocab.json or a tokenizer.json as a stream, with little more memory than its strings take. InputError where
/// it is no JSON (with the place), is no object, is nested more than 64 deep, or has more than 200,000 values beside
/// the lists.
VocabularyJson read_vocabulary_json(std::string_view text);

}  // namespace quipu
