#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/number_format.h"
#include "base/real.h"
#include "store/provenance.h"

namespace quipu {

inline const H5Format kCheckpointFormat{"quipu-checkpoint", 1};

/// A float array with a name ("layers.3.mixer.wq", or a path with `/`) and a shape (the empty shape: one number).
struct NamedArray {
  std::string name;
  std::vector<Index> shape;
  std::vector<float> data;
  bool operator==(const NamedArray&) const = default;
};

/// The same, where the numbers are kept elsewhere: as `data`, or, of a matrix in another format than float32, as its
/// stored rows.
struct ArrayView {
  std::string name;
  std::vector<Index> shape;
  std::span<const float> data;
  NumberFormat format = NumberFormat::f32;
  std::span<const std::byte> packed{};
};

/// What stands beside the arrays in a checkpoint.
struct CheckpointFacts {
  std::string config;    // JSON
  std::string progress;  // JSON: step, tokens, data position, seed, schedule, ...; empty: never trained
  TokenizerData tokenizer;
  std::vector<std::pair<std::string, std::int64_t>> counters;  // of the optimizer: steps
  Provenance provenance;
  bool operator==(const CheckpointFacts&) const = default;
};

/// A whole checkpoint as plain values. `optimizer` holds moments, by names of its own.
struct Checkpoint {
  CheckpointFacts facts;
  std::vector<NamedArray> parameters;
  std::vector<NamedArray> optimizer;
};

/// Views of arrays, for saving them.
std::vector<ArrayView> views_of(const std::vector<NamedArray>& arrays);

/// The digest of parameters (names, shapes, numbers; their order does not count): 32 hexadecimal digits. It binds a
/// state to a model, and is the same for arrays in memory and for the file that they were saved to.
std::string parameter_digest(const std::vector<ArrayView>& parameters);

/// Saves a checkpoint under a path (`-`: to stdout) at once: afterwards the path holds the new file, whole, or, where
/// this throws, still the old one. Copies none of the arrays.
void save_checkpoint(const std::string& path, const CheckpointFacts& facts, const std::vector<ArrayView>& parameters,
                     const std::vector<ArrayView>& optimizer);
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Name, shape and number format of a stored array.
struct ArrayShape {
  std::string name;
  std::vector<Index> shape;
  NumberFormat format = NumberFormat::f32;
  Index elements() const;
  Index bytes() const;  ///< as they are stored
};

/// An open checkpoint: facts at once, arrays as they are asked for, into memory that is there already.
class CheckpointFile {
 public:
  explicit CheckpointFile(const std::string& path);
  explicit CheckpointFile(InputFile input);
  explicit CheckpointFile(std::shared_ptr<const H5Reader> file);

  const std::string& name() const { return file_->name(); }
  const CheckpointFacts& facts() const { return facts_; }
  const std::string& parameter_digest() const { return parameter_digest_; }

  /// In the order in which they were saved.
  const std::vector<ArrayShape>& parameters() const { return parameters_; }
  const std::vector<ArrayShape>& optimizer() const { return optimizer_; }
  /// The number formats among the parameters: "f32", "f32 and q8".
  std::string formats_text() const;
  bool has_parameter(const std::string& name) const { return file_->has("/parameters/" + name); }

  /// Read an array into `data`. InputError with both numbers where the file has another number of elements.
  /// A matrix in another format than float32 is expanded.
  void read_parameter(const std::string& name, std::span<float> data) const;
  /// The stored rows of a matrix in another format than float32.
  void read_packed(const std::string& name, std::span<std::byte> data) const;
  void read_optimizer(const std::string& name, std::span<float> data) const;

  const H5Reader& file() const { return *file_; }

 private:
  std::shared_ptr<const H5Reader> file_;
  CheckpointFacts facts_;
  std::vector<ArrayShape> parameters_;
  std::vector<ArrayShape> optimizer_;
  std::string parameter_digest_;
};

/// Which arrays `load_checkpoint` reads; the facts always come.
struct CheckpointParts {
  bool parameters = true;
  bool optimizer = true;
};

Checkpoint load_checkpoint(const std::string& path, CheckpointParts parts = {});

}  // namespace quipu
