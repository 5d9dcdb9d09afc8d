#pragma once
#include <map>
#include <memory>
#include <string>

#include "grad/parameter.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Parameters that several layers of a model read: owned once, by the model, and visited once. A layer asks for one by
/// name when it is built; the first to ask makes it.
class SharedParameters {
 public:
  /// Stays where it is as long as this object lives. Throws InternalError where two layers ask for other shapes.
  const Parameter& get(const std::string& name, const Parameter& made) {
    auto& held = parameters_[name];
    if (!held) held = std::make_unique<Parameter>(made);
    if (held->shape() != made.shape()) throw InternalError("shared parameter {}: asked for in two shapes", name);
    return *held;
  }
  void visit(const ParameterVisitor& visitor) const {
    for (const auto& [name, parameter] : parameters_) visitor(name, *parameter);
  }

 private:
  std::map<std::string, std::unique_ptr<Parameter>> parameters_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
