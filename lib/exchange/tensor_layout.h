#pragma once
#include <string>
#include <vector>

namespace quipu {

/// How a published tensor holds the numbers of our parameters. Axes of extent 1 never count.
enum class Form {
  kSame,        ///< in the same shape
  kTransposed,  ///< the last two axes swapped
  kRow,         ///< [1,1,D] for our [D]
  kAnyShape,    ///< in the same order, whatever the axes
  kPaired,  ///< rows of a head in another order: those that a rotation mixes next to each other, not half a head apart
};

/// What was done to the numbers before they were published.
enum class Numbers {
  kSame,
  kExp,          ///< e^x
  kMinusExp,     ///< -e^x, a log decay
  kExpMinusExp,  ///< e^{-e^x}, a decay
  kHalved,       ///< x / 2^(layer / halved_every), rounded down
};

/// One published tensor and what of a model it holds: `ours` stacked along their first axis, then brought into `form`.
/// `{}` in the names stands for a layer; a `*` at the end of both for all parameters that no rule before has placed. A
/// rule does not count for a layer whose model has none of `ours`.
struct TensorRule {
  std::string published;
  std::vector<std::string> ours;
  Form form = Form::kSame;
  Numbers numbers = Numbers::kSame;
  long head_rows = 0;     ///< of kPaired: the rows of a head
  long halved_every = 0;  ///< of kHalved
};

/// A published tensor that a model has no use for, and why. Where `copy_of` is given, it must hold the numbers of that
/// published tensor.
struct UnusedTensor {
  std::string published;
  std::string why;
  std::string copy_of{};
};

/// Where the parameters of a model are in a file of another program: read from top to bottom for import, and for export
/// in the same order.
struct TensorLayout {
  std::vector<TensorRule> rules;
  std::vector<UnusedTensor> unused{};

  /// A rule for each of `names`: `published` + name for `ours` + name.
  void add_each(const std::string& published, const std::string& ours, const std::vector<std::string>& names,
                Form form = Form::kSame);
  /// A weight, or a weight and a bias.
  void add_weight(const std::string& published, const std::string& ours);
  void add_affine(const std::string& published, const std::string& ours);
};

/// `name` with the number of a layer in place of `{}`.
std::string in_layer(const std::string& name, long layer);

}  // namespace quipu
