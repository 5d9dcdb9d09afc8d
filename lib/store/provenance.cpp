#include "store/provenance.h"

#include <algorithm>
#include <charconv>

namespace quipu {

namespace {

void write_lines(H5Writer& writer, const std::string& path, const std::vector<std::string>& lines) {
  std::string text;
  for (std::string line : lines) {
    std::ranges::replace(line, '\n', ' ');
    text += line + '\n';
  }
  writer.write_text(path, text);
}

std::vector<std::string> read_lines(const H5Reader& reader, const std::string& path) {
  std::vector<std::string> lines;
  if (!reader.has(path)) return lines;
  const std::string text = reader.read_text(path);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

void write_provenance(H5Writer& writer, const Provenance& provenance) {
  write_lines(writer, "/provenance/commands", provenance.commands);
  write_lines(writer, "/provenance/data", provenance.data);
}

Provenance read_provenance(const H5Reader& reader) {
  return {read_lines(reader, "/provenance/commands"), read_lines(reader, "/provenance/data")};
}

void write_tokenizer(H5Writer& writer, const std::string& group, const TokenizerData& tokenizer) {
  writer.group(group);
  writer.attribute(group, "kind", tokenizer.kind);
  std::int64_t index = 0;
  for (const auto& [name, bytes] : tokenizer.blobs) {
    const std::string path = group + "/" + escape_name(name);
    writer.write_text(path, bytes);
    writer.attribute(path, "index", index++);
  }
}

TokenizerData read_tokenizer(const H5Reader& reader, const std::string& group) {
  TokenizerData tokenizer;
  tokenizer.kind = reader.text_attribute(group, "kind");
  for (const std::string& name : reader.data_sets(group)) {
    tokenizer.blobs.push_back({unescape_name(name), reader.read_text(group + "/" + name)});
  }
  return tokenizer;
}

std::string escape_name(const std::string& name) {
  if (name.empty()) return "%";
  std::string escaped;
  for (const char c : name) {
    const bool plain = c != '/' && c != '%' && c != '\0' && (c != '.' || !escaped.empty());
    escaped += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return escaped;
}

std::string unescape_name(const std::string& escaped) {
  std::string name;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    unsigned code = 0;
    const char* digits = escaped.data() + i + 1;
    const bool is_code =
        escaped[i] == '%' && i + 2 < escaped.size() && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
    if (is_code) i += 2;
    if (is_code || escaped[i] != '%') name += is_code ? static_cast<char>(code) : escaped[i];
  }
  return name;
}

}  // namespace quipu
