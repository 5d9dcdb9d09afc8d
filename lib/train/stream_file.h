#pragma once
#include <string>

#include "store/state_file.h"
#include "train/generator.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A stream of tokens as a state file holds it: the leaves of the layers ("layers.0.mixer.hk"), the position, the
/// waiting and the recent tokens. `open_text` is text that was made and not yet shown: the beginning of a character.
SavedState to_saved(const StreamState& stream, const std::string& parameter_digest, const std::string& open_text);

/// The stream, for `model`; sets `open_text`. Throws InputError, naming `file`, where the leaves are not the model's.
StreamState from_saved(const SavedState& saved, const SequenceModel& model, const std::string& file,
                       std::string& open_text);

}  // namespace quipu::inline QUIPU_REAL_NS
