#pragma once
#include <string>
#include <vector>

#include "store/hdf5.h"
#include "text/tokenizer_data.h"

namespace quipu {

/// Where a file comes from: the commands that led to it, oldest first, and the data it was made of (`DIGEST PATH`).
/// A line holds no line break: one in a command is stored as a blank.
struct Provenance {
  std::vector<std::string> commands;
  std::vector<std::string> data;
  bool operator==(const Provenance&) const = default;
};

/// Under /provenance, as text with a line each.
void write_provenance(H5Writer& writer, const Provenance& provenance);
Provenance read_provenance(const H5Reader& reader);

/// Under a group ("/tokenizer"): the kind as an attribute, the blobs as data sets, in their order.
void write_tokenizer(H5Writer& writer, const std::string& group, const TokenizerData& tokenizer);
TokenizerData read_tokenizer(const H5Reader& reader, const std::string& group);

/// Any name as the name of one HDF5 object, and back: `/`, `%`, a leading `.` and an empty name are escaped.
std::string escape_name(const std::string& name);
std::string unescape_name(const std::string& escaped);

}  // namespace quipu
