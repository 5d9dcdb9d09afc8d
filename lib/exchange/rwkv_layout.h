#pragma once
#include <optional>

#include "exchange/published_model.h"

namespace quipu {

/// Whether a file holds an RWKV model under the names of its published checkpoints (`blocks.0.att.key.weight`).
bool is_rwkv(const TensorSource& source);

/// In what a program's files of RWKV differ from the published ones, but for names.
struct RwkvDialect {
  bool maps_as_ours = false;    ///< low-rank maps are [out,in]
  bool any_shape = false;       ///< axes of vectors may be anything
  bool applied_decays = false;  ///< decays, and 5.1's bonuses, are those that the model works with
  bool stacked_shifts = false;  ///< one tensor, att.x_rwkvag, for RWKV-7's six shifts, ..
  bool stacked_maas = false;    ///< .. and att.time_maa_wkvrg for five of RWKV-6's
  Index head_width = 0;         ///< where the file says it; else told from shapes
  long halved_every = 0;        ///< what layers add is halved once more after so many; 0: never
  double groupnorm_eps = 64e-5;
  std::string groupnorm_why = "as in training";
};

/// Version (4, 5.1, r3r2, 5.2, 6, 7), sizes and layout of such a model, told from names and shapes. `ggmf` files of
/// rwkv.cpp hold the same models with other shapes and numbers. Throws InputError where tensors contradict each other.
PublishedModel recognise_rwkv(const TensorSource& source, const ImportOptions& options);

/// The same for a file with published names (a view of one will do) and these differences.
PublishedModel recognise_rwkv(const TensorSource& source, RwkvDialect dialect, const ImportOptions& options);

/// The published layout of a model of ours; none where it is no RWKV as published.
std::optional<TensorLayout> rwkv_layout(const ModelConfig& config);

/// The epsilon of the heads' norm among the metadata of a published file, which says it nowhere else.
inline constexpr const char* kGroupNormKey = "groupnorm_eps";

}  // namespace quipu
