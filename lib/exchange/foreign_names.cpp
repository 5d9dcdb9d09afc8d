#include "exchange/foreign_names.h"

#include <algorithm>

#include "base/error.h"

namespace quipu {
namespace {

constexpr std::string_view kLayer = "{}";

class PublishedView final : public TensorSource {
 public:
  PublishedView(const TensorSource& source, const ForeignNames& names)
      : TensorSource(source.name(), source.format(), source.file_bytes()) {
    metadata_ = source.metadata();
    for (const TensorInfo& tensor : source.tensors())
      add_tensor(name_of(tensor.name, names), tensor.type, tensor.shape);
    finish_tensors();
  }

  std::optional<std::span<const std::byte>> stored(const TensorInfo&) const override { return std::nullopt; }

 private:
  static std::string name_of(const std::string& foreign, const ForeignNames& names) {
    for (const ForeignName& name : names)
      if (const auto published = renamed(foreign, name.foreign, name.published)) return *published;
    return foreign;
  }
  void read_values(const TensorInfo& tensor, std::span<float>) const override {
    throw InternalError("{}: the numbers of {} are asked of a list of names", name(), tensor.name);
  }
};

/// The rule for a published name, brought to the name; none where the layout has none.
std::optional<TensorRule> rule_for(const TensorLayout& layout, const std::string& name) {
  for (const TensorRule& rule : layout.rules) {
    if (rule.published == name) return rule;
    if (!rule.published.ends_with('*')) continue;
    const std::string prefix = rule.published.substr(0, rule.published.size() - 1);
    if (!name.starts_with(prefix)) continue;
    TensorRule one = rule;
    const std::string& ours = rule.ours.front();
    one.ours = {ours.substr(0, ours.size() - 1) + name.substr(prefix.size())};
    return one;
  }
  return std::nullopt;
}

}  // namespace

void add_weight_name(ForeignNames& names, const std::string& foreign, const std::string& published,
                     std::optional<Form> form) {
  names.push_back({foreign + ".weight", published + ".weight", form});
}

void add_affine_name(ForeignNames& names, const std::string& foreign, const std::string& published,
                     std::optional<Form> form) {
  add_weight_name(names, foreign, published, form);
  names.push_back({foreign + ".bias", published + ".bias", form});
}

std::optional<std::string> renamed(const std::string& name, const std::string& from, const std::string& to) {
  const std::size_t at = from.find(kLayer);
  if (at == from.npos) return name == from ? std::optional(to) : std::nullopt;
  const std::string_view head = std::string_view(from).substr(0, at), tail = std::string_view(from).substr(at + 2);
  if (name.size() <= head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) return std::nullopt;
  const std::string layer = name.substr(at, name.size() - head.size() - tail.size());
  const bool is_layer = layer == kLayer || layer.find_first_not_of("0123456789") == layer.npos;
  if (!is_layer) return std::nullopt;
  std::string result = to;
  if (const std::size_t place = result.find(kLayer); place != result.npos) result.replace(place, 2, layer);
  return result;
}

std::unique_ptr<TensorSource> published_view(const TensorSource& source, const ForeignNames& names) {
  return std::make_unique<PublishedView>(source, names);
}

TensorLayout foreign_layout(const TensorLayout& published, const ForeignNames& names) {
  TensorLayout layout;
  for (const ForeignName& name : names) {
    auto rule = rule_for(published, name.published);
    if (!rule) continue;
    rule->published = name.foreign;
    if (name.form) rule->form = *name.form;
    if (name.numbers) rule->numbers = *name.numbers;
    layout.rules.push_back(std::move(*rule));
  }
  const auto foreign = [&](const std::string& known) {
    for (const ForeignName& name : names)
      if (auto found = renamed(known, name.published, name.foreign)) return *found;
    return std::string();
  };
  for (const UnusedTensor& unused : published.unused) {
    const std::string name = foreign(unused.published);
    if (name.empty()) continue;
    layout.unused.push_back({name, unused.why, unused.copy_of.empty() ? "" : foreign(unused.copy_of)});
  }
  return layout;
}

}  // namespace quipu
