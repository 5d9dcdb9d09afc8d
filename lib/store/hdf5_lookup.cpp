#include <algorithm>
#include <limits>

#include "store/hdf5.h"

namespace quipu {

namespace {

/// An attribute of type T, or nullptr.
template <typename T>
const T* find_attribute(const H5Entry& entry, const std::string& name) {
  const auto at = entry.attributes.find(name);
  return at == entry.attributes.end() ? nullptr : std::get_if<T>(&at->second);
}

template <typename T>
const T& need_attribute(const H5Reader& reader, const std::string& path, const std::string& name) {
  const T* value = find_attribute<T>(reader.entry(path), name);
  if (value == nullptr) throw InputError("{}: {} lacks the attribute {}", reader.name(), path, name);
  return *value;
}

std::string prefix_of(const std::string& group) { return group == "/" ? group : group + "/"; }

}  // namespace

std::vector<std::string> H5Reader::children(const std::string& group) const {
  const std::string prefix = prefix_of(group);
  std::vector<std::string> names;
  for (auto at = catalogue().lower_bound(prefix); at != catalogue().end() && at->first.starts_with(prefix); ++at) {
    const std::string rest = at->first.substr(prefix.size());
    if (!rest.empty() && rest.find('/') == std::string::npos && at->first != kH5DigestsGroup) names.push_back(rest);
  }
  return names;
}

std::vector<std::string> H5Reader::data_sets(const std::string& group) const {
  const std::string prefix = prefix_of(group);
  std::vector<std::pair<std::int64_t, std::string>> ordered;
  for (auto at = catalogue().lower_bound(prefix); at != catalogue().end() && at->first.starts_with(prefix); ++at) {
    if (at->second.is_group() || is_below(at->first, kH5DigestsGroup)) continue;
    const std::int64_t* index = find_attribute<std::int64_t>(at->second, "index");
    ordered.emplace_back(index != nullptr ? *index : std::numeric_limits<std::int64_t>::max(),
                         at->first.substr(prefix.size()));
  }
  std::ranges::sort(ordered);
  std::vector<std::string> paths;
  for (auto& [index, path] : ordered) paths.push_back(std::move(path));
  return paths;
}

std::uint64_t H5Reader::unsigned_attribute(const std::string& path, const std::string& name) const {
  return need_attribute<std::uint64_t>(*this, path, name);
}

std::int64_t H5Reader::integer_attribute(const std::string& path, const std::string& name) const {
  return need_attribute<std::int64_t>(*this, path, name);
}

const std::string& H5Reader::text_attribute(const std::string& path, const std::string& name) const {
  return need_attribute<std::string>(*this, path, name);
}

std::string H5Reader::read_text(const std::string& path) const {
  const std::vector<std::uint8_t> bytes = read<std::uint8_t>(path);
  return {bytes.begin(), bytes.end()};
}

}  // namespace quipu
