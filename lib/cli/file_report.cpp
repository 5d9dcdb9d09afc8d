#include "cli/file_report.h"

#include <algorithm>

namespace quipu {
namespace {

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

Json fact_json(const std::variant<std::int64_t, std::string>& fact) {
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

}  // namespace

std::string file_report_text(const std::string& name, const FileDescription& about, bool contents) {
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
