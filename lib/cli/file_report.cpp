#include "cli/file_report.h"

#include <algorithm>
#include <span>

#include "text/escape.h"

namespace quipu {
namespace {

/// How many tensors and values of metadata are listed unless all are asked for, and how much of a text.
constexpr std::size_t kFew = 8;
constexpr std::size_t kShownText = 60;

std::string kind_of(const FileDescription& about) {
  const std::string kind = about.format.substr(about.format.find('-') + 1);
  return kind == "state" ? "the memory of a model" : "a " + kind;
}

/// The value of a fact or of a key in a configuration, for people.
std::string shown(const Json& value) {
  if (value.is_number_integer()) return grouped(value.get<Index>());
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

Json fact_json(const FileFact& fact) {
  return std::visit([](const auto& value) { return Json(value); }, fact);
}

/// A stored text that is JSON as an object, any other as it is.
Json parsed(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

void add_rows(Table& table, const std::string& prefix, const Json& value) {
  if (!value.is_object()) return table.row({prefix, shown(value)});
  for (const auto& [key, inner] : value.items()) add_rows(table, prefix + "." + key, inner);
}

/// A text out of a foreign file, on a line, cut where it is long.
std::string cut(std::string_view text, bool whole) {
  return whole || text.size() <= kShownText ? escape_text(text) : escape_text(text.substr(0, kShownText)) + "...";
}

void add_more(Table& table, std::size_t listed, std::size_t all) {
  if (listed < all) table.row({"", fmt::format("... and {} more; --verbose lists all", all - listed)});
}

std::string tensors_text(const std::string& name, const FileDescription& about, bool all) {
  std::string text = fmt::format("{}: a file of tensors ({})\n", escape_text(name), about.format);
  Table table({"", ""});
  table.row({"size", human_bytes(static_cast<double>(about.file_bytes))});
  for (const auto& [key, fact] : about.facts) table.row({key, escape_text(shown(fact_json(fact)))});
  for (const auto& [key, value] : about.texts) add_rows(table, key, parsed(value));
  const std::size_t values = all ? about.metadata.size() : std::min(about.metadata.size(), 4 * kFew);
  for (const auto& [key, fact] : std::span(about.metadata).first(values)) {
    table.row({cut(key, all), cut(shown(fact_json(fact)), all)});
  }
  add_more(table, values, about.metadata.size());
  const std::size_t tensors = all ? about.tensors.size() : std::min(about.tensors.size(), kFew);
  for (std::size_t i = 0; i < tensors; ++i) {
    table.row({cut(about.tensors[i].name, all), type_and_shape(about.tensors[i])});
  }
  add_more(table, tensors, about.tensors.size());
  return text + table.text();
}

void add_tensors(Json& json, const FileDescription& about) {
  Json& metadata = json["metadata"] = Json::object();
  for (const auto& [key, fact] : about.metadata) metadata[key] = fact_json(fact);
  Json& tensors = json["tensors"] = Json::array();
  for (const TensorInfo& tensor : about.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor_type_name(tensor.type)},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes()}});
  }
}

/// Whether another program wrote a file: ours have a version.
bool is_foreign(const FileDescription& about) { return about.version == 0; }

}  // namespace

std::string file_report_text(const std::string& name, const FileDescription& about, bool contents) {
  if (is_foreign(about)) return tensors_text(name, about, contents);
  std::string text = fmt::format("{}: {} ({}, version {})\n", name, kind_of(about), about.format, about.version);
  Table table({"", ""});
  table.row({"size", human_bytes(static_cast<double>(about.file_bytes))});
  table.row({"created", fmt::format("{} by {}", about.created, about.created_by)});
  table.row({"digest", about.digest});
  for (const auto& [key, fact] : about.facts) table.row({key, shown(fact_json(fact))});
  for (const auto& [key, value] : about.texts) add_rows(table, key, parsed(value));
  for (const std::string& command : about.provenance.commands) table.row({"made by", command});
  for (const std::string& data : about.provenance.data) table.row({"made of", data});
  if (contents)
    for (const auto& [path, type] : about.contents) table.row({path, type});
  return text + table.text();
}

Json file_report_json(const std::string& name, const FileDescription& about) {
  Json json = json_report("file", 1);
  json["file"] = name;
  json["format"] = about.format;
  if (is_foreign(about)) {
    json["file_bytes"] = about.file_bytes;
    for (const auto& [key, fact] : about.facts) json[key] = fact_json(fact);
    for (const auto& [key, value] : about.texts) json[key] = parsed(value);
    add_tensors(json, about);
    return json;
  }
  json["version"] = about.version;
  json["created"] = about.created;
  json["created_by"] = about.created_by;
  json["digest"] = about.digest;
  json["file_bytes"] = about.file_bytes;
  for (const auto& [key, fact] : about.facts) json[key] = fact_json(fact);
  for (const auto& [key, value] : about.texts) json[key] = parsed(value);
  json["provenance"] = {{"commands", about.provenance.commands}, {"data", about.provenance.data}};
  Json& contents = json["contents"] = Json::object();
  for (const auto& [path, type] : about.contents) contents[path] = type;
  return json;
}

}  // namespace quipu
