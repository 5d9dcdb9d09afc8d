#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exchange/tensor_layout.h"
#include "grad/parameter.h"
#include "store/tensor_source.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A rule of a layout, for one layer of one model.
struct Placement {
  std::string published;
  Shape shape;  ///< of the published tensor
  std::vector<const Parameter*> parameters;
  const TensorRule* rule;
  Index layer = 0;
};

/// Where each of a model's parameters goes; every parameter exactly once. Valid as long as the layout and the
/// parameters are. Throws InternalError where the layout leaves one out or names one twice.
std::vector<Placement> place_parameters(const TensorLayout& layout, const Parameters& parameters, Index layers);

/// Fills a model's parameters from a file, packed matrices with what is nearest to it. Throws InputError, naming the
/// tensor, where one is missing or of another shape, where it holds numbers that the layout cannot have made, and,
/// unless `skip_unknown`, where the file has tensors that the layout does not know. Returns what was left aside, one
/// line each.
std::vector<std::string> read_tensors(const TensorSource& source, const TensorLayout& layout, Parameters& parameters,
                                      Index layers, bool skip_unknown);

/// The numbers that the published tensor has. Throws InternalError for a rule that changes numbers: such files are
/// read, never written.
std::vector<float> published_numbers(const Placement& placement);

}  // namespace quipu::inline QUIPU_REAL_NS
