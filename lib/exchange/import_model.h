#pragma once
#include <memory>
#include <string>
#include <vector>

#include "exchange/published_model.h"
#include "models/language_model.h"

namespace quipu::inline QUIPU_REAL_NS {

struct ImportedModel {
  std::string architecture;
  std::unique_ptr<LanguageModel> model;  ///< without gradients
  /// What was decided where the file leaves it open, and what of it was not used; one line each.
  std::vector<std::string> notes;
};

/// Says what model a file holds, from its configuration, or its tensors' names and shapes. Throws InputError where it
/// is none that is known.
PublishedModel recognise_model(const TensorSource& source, const ImportOptions& options = {});

/// Reads a model of another program; its parameters have the number formats that `format` chooses. Throws InputError,
/// one line that names the file and the tensor, where it is none, or its tensors are not those of its configuration.
ImportedModel import_model(const TensorSource& source, const ImportOptions& options = {},
                           const FormatChoice& format = {});

}  // namespace quipu::inline QUIPU_REAL_NS
