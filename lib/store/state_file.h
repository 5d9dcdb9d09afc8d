#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/real.h"
#include "store/provenance.h"

namespace quipu {

inline const H5Format kStateFormat{"quipu-state", 1};

/// One array of a model's memory. The variant's type is kept in the file.
struct SavedLeaf {
  std::string name;
  std::vector<Index> shape;
  std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>> data;
  bool operator==(const SavedLeaf&) const = default;
};

/// A model's memory after reading something, bound to the model by the digest of its parameters.
struct SavedState {
  std::string parameter_digest;
  std::int64_t tokens = 0;                                               // read so far
  std::vector<SavedLeaf> leaves;                                         // names as NamedArray's
  std::vector<std::pair<std::string, std::vector<std::uint8_t>>> blobs;  // the tokenizer's open end, and the like
  Provenance provenance;
  bool operator==(const SavedState&) const = default;
};

/// Saves a state under a path (`-`: to stdout), all of it or nothing.
void save_state(const std::string& path, const SavedState& state);

/// Loads a state for a model whose parameters have this digest. Throws InputError where it is another model's.
SavedState load_state(const std::string& path, const std::string& parameter_digest);

}  // namespace quipu
