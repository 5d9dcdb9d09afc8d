#include "exchange/import_model.h"

#include <new>

#include "base/error.h"
#include "exchange/rwkv_layout.h"
#include "exchange/tensor_transfer.h"

namespace quipu::inline QUIPU_REAL_NS {

PublishedModel recognise_model(const TensorSource& source, const ImportOptions& options) {
  if (is_rwkv(source)) return recognise_rwkv(source, options);
  throw InputError("{}: is no model that is known here; there are RWKV-4 to RWKV-7", source.name());
}

ImportedModel import_model(const TensorSource& source, const ImportOptions& options) {
  PublishedModel published = recognise_model(source, options);
  ImportedModel imported{published.architecture, nullptr, std::move(published.notes)};
  try {
    imported.model = std::make_unique<LanguageModel>(published.config, false);
  } catch (const UsageError& error) {  // the file's fault, not that of the command line
    throw InputError("{}: its sizes make no model here ({}); get the file again", source.name(), error.what());
  }
  for (std::string& line : read_tensors(source, published.layout, imported.model->parameters(),
                                        imported.model->config().layers, options.skip_unknown))
    imported.notes.push_back(std::move(line));
  return imported;
}

}  // namespace quipu::inline QUIPU_REAL_NS
