#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/real.h"

namespace quipu {

/// A reference tensor, row-major, whatever type the file stores. A scalar has an empty shape and one value.
struct GoldenTensor {
  std::vector<Index> shape;
  std::vector<double> values;

  /// The values rounded to another type, e.g. `as<Real>()`.
  template <typename T>
  std::vector<T> as() const {
    std::vector<T> out;
    out.reserve(values.size());
    for (const double value : values) out.push_back(static_cast<T>(value));
    return out;
  }
};

/// One case (a top-level group) of a golden file. Paths are relative to it: `input/x`, `grad/param/w`.
/// A path or attribute that is missing or of the wrong kind throws InputError with the file, the case and the name.
class GoldenCase {
 public:
  const std::string& name() const { return name_; }

  /// Whether a group or data set is there; every folder on the way may be missing too.
  bool has(const std::string& path) const;
  GoldenTensor tensor(const std::string& path) const;
  /// Paths of all data sets at or below `group`, sorted, relative to `group` ("" is the case itself);
  /// none where the group is missing.
  std::vector<std::string> tensors(const std::string& group = "") const;

  bool has_attribute(const std::string& attribute) const;
  /// A numeric or boolean attribute: all its elements, the only one, or the only one with a default.
  std::vector<double> numbers(const std::string& attribute) const;
  double number(const std::string& attribute) const;
  double number_or(const std::string& attribute, double otherwise) const;
  std::string text(const std::string& attribute) const;

 private:
  friend class GoldenFile;
  GoldenCase(std::shared_ptr<const void> file, std::string file_name, std::string name);
  std::string where(const std::string& what) const { return file_name_ + ": " + name_ + "/" + what; }

  std::shared_ptr<const void> file_;
  std::string file_name_;
  std::string name_;
};

/// A file of reference values (HDF5), opened for reading while this object or one of its cases lives.
/// `GoldenFile("optim")` is test/golden/optim.h5; a name with a slash is a path.
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name);

  static bool exists(const std::string& name);

  /// The names of all cases, sorted.
  std::vector<std::string> cases() const;
  GoldenCase at(const std::string& name) const;

 private:
  std::shared_ptr<const void> file_;
  std::string path_;
};

}  // namespace quipu
