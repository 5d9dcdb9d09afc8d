#pragma once
#include <zlib.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "store/tensor_formats.h"

// Foreign files written byte by byte, right and wrong ones.
namespace quipu_test {

/// The bytes of a number, little-endian.
template <typename T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes;
  for (const T& value : values) bytes += bytes_of(value);
  return bytes;
}

/// A text after its length, a number of type T.
template <typename T>
std::string with_length(std::string_view text) {
  return bytes_of(static_cast<T>(text.size())) + std::string(text);
}

inline std::string safetensors(const std::string& header, const std::string& data = "") {
  return with_length<std::uint64_t>(header) + data;
}

struct ZipPart {
  std::string name;
  std::string content;
  bool deflated = false;
};

/// An archive, with faults to order.
class ZipBytes {
 public:
  /// `claimed_size` other than 0 stands in the directory instead of the content's size.
  void add(const ZipPart& part, std::uint32_t claimed_size = 0) {
    const std::string stored = part.deflated ? deflated(part.content) : part.content;
    const auto crc = static_cast<std::uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(part.content.data()), static_cast<uInt>(part.content.size())));
    const std::uint32_t size = claimed_size != 0 ? claimed_size : static_cast<std::uint32_t>(part.content.size());
    const std::string facts = bytes_of(std::uint16_t{20}) + bytes_of(std::uint16_t{0}) +
                              bytes_of<std::uint16_t>(part.deflated ? 8 : 0) + bytes_of(std::uint32_t{0}) +
                              bytes_of(crc) + bytes_of(static_cast<std::uint32_t>(stored.size())) + bytes_of(size) +
                              bytes_of(static_cast<std::uint16_t>(part.name.size())) + bytes_of(std::uint16_t{0});
    list(part.name, facts, static_cast<std::uint32_t>(files_.size()));
    files_ += "PK\x03\x04" + facts + part.name + stored;
  }

  /// Lists the last entry once more under another name of the same length, so that both have the same bytes.
  void list_again(const std::string& name) { list(name, last_facts_, last_offset_); }

  std::string bytes() const {
    return files_ + directory_ + "PK\x05\x06" + std::string(4, '\0') + bytes_of(entries_) + bytes_of(entries_) +
           bytes_of(static_cast<std::uint32_t>(directory_.size())) +
           bytes_of(static_cast<std::uint32_t>(files_.size())) + std::string(2, '\0');
  }

 private:
  void list(const std::string& name, const std::string& facts, std::uint32_t offset) {
    directory_ += "PK\x01\x02" + bytes_of(std::uint16_t{20}) + facts + std::string(10, '\0') + bytes_of(offset) + name;
    last_facts_ = facts;
    last_offset_ = offset;
    ++entries_;
  }

  static std::string deflated(const std::string& content) {
    z_stream stream = {};
    deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&stream, static_cast<uLong>(content.size())), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    stream.avail_in = static_cast<uInt>(content.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
  }

  std::string files_;
  std::string directory_;
  std::string last_facts_;
  std::uint32_t last_offset_ = 0;
  std::uint16_t entries_ = 0;
};

/// An archive of these parts.
inline std::string zip(const std::vector<ZipPart>& parts) {
  ZipBytes archive;
  for (const ZipPart& part : parts) archive.add(part);
  return archive.bytes();
}

/// Opens bytes as the content of a file named `f`. They must outlive the source.
inline std::unique_ptr<quipu::TensorSource> open_bytes(const std::string& bytes) {
  return quipu::open_tensor_bytes(quipu::MappedFile::borrow("f", std::as_bytes(std::span(bytes))));
}

/// What is said of bytes that must be refused; "" where they are not. Every message is one line that begins with `f:`.
inline std::string refusal(const std::string& bytes) {
  try {
    open_bytes(bytes);
  } catch (const quipu::InputError& error) {
    const std::string text = error.what();
    return text.starts_with("f: ") && text.find('\n') == std::string::npos ? text : "ill-formed: " + text;
  }
  return "";
}

inline bool refuses(const std::string& bytes, std::string_view because) {
  return refusal(bytes).find(because) != std::string::npos;
}

/// Opens and reads every tensor of every beginning of a file, which must do no harm. Returns how many were refused.
inline std::size_t refused_beginnings(const std::string& bytes) {
  std::size_t refused = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A copy of its own, so that a sanitizer sees what is read beyond it.
    const std::string part = bytes.substr(0, size);
    try {
      const auto source = open_bytes(part);
      for (const quipu::TensorInfo& tensor : source->tensors()) source->read(tensor.name);
    } catch (const quipu::InputError&) {
      ++refused;
    }
  }
  return refused;
}

}  // namespace quipu_test
