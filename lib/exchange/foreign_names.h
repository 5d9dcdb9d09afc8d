#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exchange/tensor_layout.h"
#include "store/tensor_source.h"

namespace quipu {

/// What another program calls a published tensor; `{}` in both names stands for a layer.
struct ForeignName {
  std::string foreign;
  std::string published;
  /// Where that program holds the numbers in another way than the published layout.
  std::optional<Form> form{};
  std::optional<Numbers> numbers{};
};
using ForeignNames = std::vector<ForeignName>;

/// Adds `foreign` + name for `published` + name, for the weight alone, or for weight and bias.
void add_weight_name(ForeignNames& names, const std::string& foreign, const std::string& published,
                     std::optional<Form> form = std::nullopt);
void add_affine_name(ForeignNames& names, const std::string& foreign, const std::string& published,
                     std::optional<Form> form = std::nullopt);

/// `name` after the pattern `to` where it is one of the pattern `from`: {"blk.3.attn_q", "blk.{}.attn_q", "h.{}.q"} ->
/// "h.3.q". The layer may be `{}` itself.
std::optional<std::string> renamed(const std::string& name, const std::string& from, const std::string& to);

/// A file seen under the published names; tensors that have none keep their own. For what only looks at names and
/// shapes: its numbers are not read. Valid as long as `source`.
std::unique_ptr<TensorSource> published_view(const TensorSource& source, const ForeignNames& names);

/// The layout of a file with foreign names: for each of them that the published layout has a rule for, that rule.
TensorLayout foreign_layout(const TensorLayout& published, const ForeignNames& names);

}  // namespace quipu
