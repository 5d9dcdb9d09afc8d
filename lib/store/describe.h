#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "store/provenance.h"
#include "store/tensor_source.h"

namespace quipu {

/// A number, a text or a yes or no that a file says.
using FileFact = std::variant<std::int64_t, std::string, double, bool>;

/// What a file is. A file of tensors that another program wrote has tensors and metadata, and neither version, nor
/// maker, nor digest. Facts are ordered, by names fit for JSON with their units in them (`train_tokens`, `parameters`,
/// `file_bytes`); texts of their own (a configuration in JSON) stand in `texts`.
struct FileDescription {
  std::string format;
  int version = 0;
  std::string created_by;
  std::string created;
  std::string digest;
  std::uint64_t file_bytes = 0;
  std::vector<std::pair<std::string, FileFact>> facts;
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, std::string>> contents;  // data sets by path, with `uint16 [1000]`
  TensorList tensors;
  std::vector<std::pair<std::string, FileFact>> metadata;
  Provenance provenance;
};

/// Describes a dataset, checkpoint, state or profile, or a file or folder of tensors that another program wrote. Reads
/// all of it when `verify` is set, else what it must. Throws InputError for a damaged or unknown file.
FileDescription describe_file(const std::string& path, bool verify = false);

}  // namespace quipu
