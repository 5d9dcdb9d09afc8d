#include "exchange/import_model.h"

#include <new>

#include "base/error.h"
#include "exchange/gguf_model.h"
#include "exchange/hugging_face.h"
#include "exchange/rwkv_hugging_face.h"
#include "exchange/rwkv_layout.h"
#include "exchange/tensor_transfer.h"

namespace quipu::inline QUIPU_REAL_NS {

PublishedModel recognise_model(const TensorSource& source, const ImportOptions& options) {
  if (source.format() == "GGUF") return recognise_gguf(source, options);
  const std::string* const config = source.metadata().find_text("config.json");
  if (is_rwkv(source)) {  // under its own names; a configuration says nothing new
    if (config != nullptr) require_rwkv_config(source.name(), *config);
    return recognise_rwkv(source, options);
  }
  if (config != nullptr) {
    if (is_rwkv_config(*config)) return recognise_rwkv_config(source, *config, options);
    if (options.groupnorm_eps) throw UsageError("--groupnorm-eps: is for RWKV alone; leave it out");
    return recognise_hugging_face(source, {*config});
  }
  throw InputError("{}: has neither the tensors of an RWKV model nor a config.json beside it; give the model's folder",
                   source.name());
}

ImportedModel import_model(const TensorSource& source, const ImportOptions& options, const FormatChoice& format) {
  PublishedModel published = recognise_model(source, options);
  ImportedModel imported{published.architecture, nullptr, std::move(published.notes)};
  try {
    imported.model = std::make_unique<LanguageModel>(published.config, false, format);
  } catch (const std::bad_alloc&) {
    throw InputError("{}: its sizes make a model that does not fit into the memory; is it whole?", source.name());
  } catch (const UsageError& error) {  // the file's fault, not that of the command line
    throw InputError("{}: its sizes make no model here ({}); get the file again", source.name(), error.what());
  }
  for (std::string& line : read_tensors(source, published.layout, imported.model->parameters(),
                                        imported.model->config().layers, options.skip_unknown))
    imported.notes.push_back(std::move(line));
  return imported;
}

}  // namespace quipu::inline QUIPU_REAL_NS
