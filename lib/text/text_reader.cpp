#include "text/text_reader.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace quipu {

namespace {

constexpr std::size_t kBlockBytes = 1 << 18;
constexpr std::string_view kGzipMagic = "\x1f\x8b";

}  // namespace

/// zlib's stream over the compressed bytes of a reader.
class TextReader::Inflater {
 public:
  explicit Inflater(TextReader& reader) : reader_(reader), input_(kBlockBytes) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw InputError("{}: out of memory", reader_.name());
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::size_t read(std::span<char> buffer) {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    const std::size_t room = std::min<std::size_t>(buffer.size(), 1 << 30);
    stream_.avail_out = static_cast<uInt>(room);
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0 && !filled_ && !refill()) {
        if (between_members_) return 0;
        throw InputError("{}: its gzip data are cut short; get the file again", reader_.name());
      }
      if (between_members_ && !begin_member()) continue;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      filled_ = status == Z_OK && stream_.avail_out == 0;
      if (status == Z_STREAM_END) {
        between_members_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        throw InputError("{}: its gzip data are damaged ({}); get the file again", reader_.name(),
                         stream_.msg != nullptr ? stream_.msg : zError(status));
      }
    }
    return room - stream_.avail_out;
  }

 private:
  bool refill() {
    const std::size_t got = reader_.read_raw(input_);
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(got);
    return got > 0;
  }

  /// Begins the next member, or skips zero bytes (padding of tapes and disks) and returns false.
  bool begin_member() {
    if (*stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
      return false;
    }
    inflateReset(&stream_);
    between_members_ = false;
    return true;
  }

  TextReader& reader_;
  std::vector<char> input_;
  z_stream stream_{};
  bool between_members_ = false;
  bool filled_ = false;  // the last output was full, so that more may come without more input
};

TextReader::TextReader(const std::string& path) : TextReader(std::make_shared<InputFile>(path)) {}

TextReader::TextReader(std::shared_ptr<InputFile> input) : input_(std::move(input)) {}

TextReader::~TextReader() = default;

std::size_t TextReader::read_raw(std::span<char> buffer) {
  if (head_.empty()) return input_->read_some(std::as_writable_bytes(buffer));
  const std::size_t count = std::min(head_.size(), buffer.size());
  std::copy_n(head_.begin(), count, buffer.begin());
  head_.erase(0, count);
  return count;
}

std::size_t TextReader::read(std::span<char> buffer) {
  if (!started_) {
    started_ = true;
    std::string head;
    char byte = 0;
    while (kGzipMagic.starts_with(head) && head.size() < kGzipMagic.size() && read_raw({&byte, 1}) == 1) head += byte;
    head_ = head;
    if (head == kGzipMagic) inflater_ = std::make_unique<Inflater>(*this);
  }
  const std::size_t got = inflater_ ? inflater_->read(buffer) : read_raw(buffer);
  total_ += got;
  if (total_ == 0) throw InputError("{}: is empty; give a text with something in it", name());
  return got;
}

std::string read_text(const std::string& path) {
  TextReader reader(path);
  std::string text;
  std::vector<char> block(kBlockBytes);
  while (const std::size_t got = reader.read(block)) text.append(block.data(), got);
  return text;
}

}  // namespace quipu
