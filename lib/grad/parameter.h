#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "grad/tape.h"
#include "tensor/weight.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Fills a new parameter.
using Initializer = std::function<void(std::span<Real> values, const Rng& rng)>;

Initializer constant(double value);
Initializer normal(double deviation);
/// Uniform in [-bound, bound).
Initializer uniform(double bound);
/// Xavier's uniform for a matrix [out,in]: bound = gain sqrt(6 / (in + out)).
Initializer xavier_uniform(Index out, Index in, double gain = 1);
/// A random orthogonal matrix [out,in] (uniform over all of them) times `gain`: its rows, or its columns where these
/// are fewer, are orthogonal and of length `gain`.
Initializer orthogonal(Index out, Index in, double gain = 1);

/// How a parameter is trained.
struct ParameterTraits {
  bool trainable = true;  ///< false: a buffer (random features, frozen keys); saved, never changed
  bool decay = true;      ///< takes part in weight decay
  double lr_scale = 1;
  bool by_position = false;  ///< a row for each position, of which a token reads its own or those up to its own
  bool matrix = false;       ///< used as a `Weight` alone, so that it may be stored in another number format
};

/// A named array of a model: its shape, how it starts and how it is trained. The numbers live in the flat arrays of the
/// `Parameters` that the model is bound to; those of a packed matrix (not float32) in storage of its own.
class Parameter {
 public:
  Parameter() = default;
  Parameter(const Shape& shape, Initializer init, ParameterTraits traits = {})
      : shape_(shape), init_(std::move(init)), traits_(traits) {}

  const Shape& shape() const { return shape_; }
  const ParameterTraits& traits() const { return traits_; }
  /// Throws InternalError for a packed matrix, which has no floats.
  const Tensor& value() const {
    if (is_packed()) refuse_packed();
    return value_;
  }
  NumberFormat format() const { return is_packed() ? packed_.format() : NumberFormat::f32; }
  bool is_packed() const { return packed_.defined(); }
  const PackedMatrix& packed() const { return packed_; }
  /// A matrix in whatever format it is.
  Weight weight() const { return is_packed() ? Weight(packed_) : Weight(value_); }
  /// On the tape: with a slot in the flat gradient array where the model trains.
  Var var() const { return {value(), gradient_}; }
  /// Rows [begin, end) along the first axis, on the tape.
  Var rows(Index begin, Index end) const;
  bool bound() const { return value_.defined() || is_packed(); }
  /// The same, used as a `Weight` alone; for parameters of two axes.
  Parameter as_matrix() &&;

 private:
  friend class Parameters;
  [[noreturn]] void refuse_packed() const;
  Shape shape_;
  Initializer init_;
  ParameterTraits traits_;
  Tensor value_;
  PackedMatrix packed_;
  std::shared_ptr<Gradient> gradient_;
};

/// A matrix that is used as a `Weight` alone.
Parameter matrix(Index out, Index in, Initializer init);

/// A weight that takes no part in weight decay (norms, biases, decays).
Parameter undecayed(const Shape& shape, Initializer init);
/// A buffer: saved with the model, never trained.
Parameter buffer(const Shape& shape, Initializer init);

/// Visits the parameters of a module and, through `in`, of the modules inside it. A module's `visit` is the only list
/// of its parameters and buffers: initialisation, files, counts and optimiser groups all use it.
class ParameterVisitor {
 public:
  using Function = std::function<void(const std::string& name, Parameter& parameter)>;
  explicit ParameterVisitor(Function function, std::string prefix = "")
      : function_(std::move(function)), prefix_(std::move(prefix)) {}

  void operator()(const std::string& name, Parameter& parameter) const { function_(prefix_ + name, parameter); }
  ParameterVisitor in(const std::string& scope) const { return ParameterVisitor(function_, prefix_ + scope + "."); }

 private:
  Function function_;
  std::string prefix_;
};

/// Chooses the number format of a parameter; anything but f32 is for matrices alone. Empty: all are f32.
using FormatChoice = std::function<NumberFormat(const std::string& name, const Parameter& parameter)>;

/// All matrices of at least kLeastPackedColumns columns in `format`; in q8 those whose rows, padded, would take more
/// bytes in q4.
FormatChoice matrices_in(NumberFormat format);
inline constexpr Index kLeastPackedColumns = 32;

/// The flat arrays behind a model's parameters: all trainable values in one, their gradients in a second of the same
/// order, the buffers in a third. Packed matrices are none of these: they are never trained.
class Parameters {
 public:
  struct Entry {
    std::string name;
    Parameter* parameter;
    Index begin;  ///< offset of its first element in its array
    Index end;
  };

  /// Lays out and binds what `visit` lists; values are undefined. Without `gradients` none are allocated (inference).
  /// Throws InternalError where `format` packs what is no matrix, or beside gradients.
  Parameters(const std::function<void(const ParameterVisitor&)>& visit, bool gradients,
             const FormatChoice& format = {});

  /// Fills every parameter from its initialiser, packed ones with what is nearest to it; each has a random stream of
  /// its own, by its name.
  void initialise(std::uint64_t seed);
  void zero_gradients();

  std::span<Real> values() { return values_.span(); }
  std::span<Real> gradients() { return gradients_.span(); }
  const std::vector<Entry>& trainable() const { return trainable_; }
  const std::vector<Entry>& buffers() const { return buffers_; }
  const std::vector<Entry>& packed() const { return packed_; }
  /// Trainable first, then packed matrices, then buffers.
  std::vector<Entry> all() const;
  /// Number of numbers, in whatever format, but those of buffers.
  Index count() const;
  /// Bytes that all values take.
  Index value_bytes() const;
  /// The name of the parameter that holds element `index` of the flat arrays.
  const std::string& name_at(Index index) const;

 private:
  std::vector<Entry> trainable_, packed_, buffers_;
  Tensor values_, gradients_, buffer_values_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
