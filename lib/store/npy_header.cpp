#include "store/npy_header.h"

#include <algorithm>
#include <charconv>

#include "store/byte_cursor.h"

namespace quipu {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostAxes = 32;

struct TypeCode {
  std::string_view code;
  TensorType type;
};

constexpr TypeCode kTypes[] = {
    {"<f8", TensorType::kF64}, {"<f4", TensorType::kF32}, {"<f2", TensorType::kF16}, {"<i8", TensorType::kI64},
    {"<i4", TensorType::kI32}, {"<i2", TensorType::kI16}, {"|i1", TensorType::kI8},  {"<u8", TensorType::kU64},
    {"<u4", TensorType::kU32}, {"<u2", TensorType::kU16}, {"|u1", TensorType::kU8},  {"|b1", TensorType::kBool},
};

/// Reads the header's text.
class HeaderText {
 public:
  HeaderText(const std::string& file, const std::string& entry, std::string_view text)
      : file_(file), entry_(entry), text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    unsigned seen = 0;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && first_time(seen, 1)) {
        header.type = type();
      } else if (key == "fortran_order" && first_time(seen, 2)) {
        header.fortran = boolean();
      } else if (key == "shape" && first_time(seen, 4)) {
        header.shape = shape();
      } else {
        refuse();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (seen != 7 || !text_.empty()) refuse();
    return header;
  }

 private:
  [[noreturn]] void refuse() const {
    throw InputError("{}: the header of '{}' is not what NumPy writes, near '{}'; get the file again", file_,
                     shown_name(entry_), shown_name(text_.substr(0, 20)));
  }

  static bool first_time(unsigned& seen, unsigned bit) {
    const bool first = (seen & bit) == 0;
    seen |= bit;
    return first;
  }

  void skip_blanks() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
  }

  bool accept(char wanted) {
    skip_blanks();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) refuse();
  }

  std::string_view quoted() {
    expect('\'');
    const std::size_t end = text_.find('\'');
    if (end == std::string_view::npos) refuse();
    const std::string_view inside = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return inside;
  }

  TensorType type() {
    if (accept('[')) refuse_type("a record");
    const std::string_view code = quoted();
    const auto* found = std::ranges::find(kTypes, code, &TypeCode::code);
    if (found == std::end(kTypes)) refuse_type(code == "|O" ? "Python objects" : shown_name(code));
    return found->type;
  }

  [[noreturn]] void refuse_type(const std::string& shown) const {
    throw InputError(
        "{}: '{}' is of type {}, which is not read here; save it as little-endian float32, float16 or "
        "float64",
        file_, shown_name(entry_), shown);
  }

  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.starts_with(word)) {
        text_.remove_prefix(std::string_view(word).size());
        return value;
      }
    }
    refuse();
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0 || sizes.size() == kMostAxes) refuse();
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      sizes.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  const std::string& file_;
  const std::string& entry_;
  std::string_view text_;
};

/// Where the header's text begins: magic number, version and a length of 2 bytes (version 1) or 4 come before it.
std::uint64_t text_start(std::string_view prefix) { return prefix[kMagic.size()] == 1 ? 10 : 12; }

}  // namespace

std::uint64_t npy_header_bytes(const std::string& file, const std::string& entry, std::string_view prefix) {
  if (prefix.size() < kNpyPrefix || !prefix.starts_with(kMagic)) {
    throw InputError("{}: '{}' does not begin like a NumPy array; get the file again", file, shown_name(entry));
  }
  const char version = prefix[kMagic.size()];
  if (version < 1 || version > 3) {
    throw InputError("{}: '{}' is a NumPy array of version {}, and 1 to 3 are read; save it anew", file,
                     shown_name(entry), static_cast<int>(version));
  }
  ByteCursor length(file, std::as_bytes(std::span(prefix.substr(kMagic.size() + 2))));
  const std::uint64_t text =
      version == 1 ? length.number<std::uint16_t>("its header") : length.number<std::uint32_t>("its header");
  return text_start(prefix) + text;
}

NpyHeader parse_npy_header(const std::string& file, const std::string& entry, std::string_view header) {
  return HeaderText(file, entry, header.substr(text_start(header))).parse();
}

}  // namespace quipu
