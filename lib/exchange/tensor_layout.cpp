#include "exchange/tensor_layout.h"

namespace quipu {

void TensorLayout::add_each(const std::string& published, const std::string& ours,
                            const std::vector<std::string>& names, Form form) {
  for (const std::string& name : names) rules.push_back({published + name, {ours + name}, form});
}

void TensorLayout::add_weight(const std::string& published, const std::string& ours) {
  rules.push_back({published + ".weight", {ours + ".weight"}});
}

void TensorLayout::add_affine(const std::string& published, const std::string& ours) {
  add_weight(published, ours);
  rules.push_back({published + ".bias", {ours + ".bias"}});
}

std::string in_layer(const std::string& name, long layer) {
  std::string text = name;
  if (const std::size_t at = text.find("{}"); at != text.npos) text.replace(at, 2, std::to_string(layer));
  return text;
}

}  // namespace quipu
