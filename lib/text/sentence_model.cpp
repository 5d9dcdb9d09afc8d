#include "text/sentence_model.h"

#include <bit>

#include "base/error.h"
#include "text/tokenizer_blobs.h"

namespace quipu {

namespace {

/// The fields of one message of a protocol buffer, in turn.
class Fields {
 public:
  Fields(std::string_view bytes, std::size_t offset) : bytes_(bytes), offset_(offset) {}

  bool next() {
    if (at_ >= bytes_.size()) return false;
    const std::uint64_t tag = varint();
    number_ = tag >> 3;
    wire_ = tag & 7;
    value_ = 0;
    text_ = {};
    if (number_ == 0) wrong();
    if (wire_ == 0) {
      value_ = varint();
    } else if (wire_ == 1) {
      take(8);
    } else if (wire_ == 2) {
      const std::uint64_t size = varint();
      if (size > bytes_.size() - at_) {
        throw InputError("byte {}: a field of {} bytes, and {} are left; get the file again", offset_ + at_, size,
                         bytes_.size() - at_);
      }
      text_offset_ = offset_ + at_;
      text_ = take(static_cast<std::size_t>(size));
    } else if (wire_ == 5) {
      text_ = take(4);
      value_ = read_u32(text_, 0);
    } else {
      wrong();
    }
    return true;
  }

  std::uint64_t number() const { return number_; }
  bool flag() const { return expect(0), value_ != 0; }
  std::int64_t integer() const { return expect(0), static_cast<std::int64_t>(value_); }
  float real() const { return expect(5), std::bit_cast<float>(static_cast<std::uint32_t>(value_)); }
  std::string text() const { return expect(2), std::string(text_); }
  Fields message() const { return expect(2), Fields(text_, text_offset_); }

 private:
  [[noreturn]] void wrong() const {
    throw InputError("byte {}: is no field of a SentencePiece model; get the file again", offset_ + at_);
  }
  void expect(std::uint64_t wire) const {
    if (wire_ != wire) wrong();
  }
  std::string_view take(std::size_t size) {
    if (size > bytes_.size() - at_) wrong();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    wrong();
  }

  std::string_view bytes_;
  std::size_t offset_;  // of the message in the file
  std::size_t at_ = 0;
  std::uint64_t number_ = 0, wire_ = 0, value_ = 0;
  std::string_view text_;
  std::size_t text_offset_ = 0;
};

[[noreturn]] void refuse(std::string_view what) {
  throw InputError("SentencePiece model: {} is not read here; choose another tokenizer", what);
}

SentenceModel::Piece read_piece(Fields fields, std::size_t id) {
  SentenceModel::Piece piece;
  while (fields.next()) {
    if (fields.number() == 1) piece.text = fields.text();
    if (fields.number() == 2) piece.score = fields.real();
    if (fields.number() == 3) {
      const std::int64_t type = fields.integer();
      if (type < 1 || type > 6) throw InputError("piece {}: has type {}, outside 1 to 6; get the file again", id, type);
      piece.type = static_cast<SentenceModel::Type>(type);
    }
  }
  return piece;
}

void read_trainer(Fields fields, SentenceModel& model, std::int64_t& end_id) {
  while (fields.next()) {
    switch (fields.number()) {
      case 3:
        if (fields.integer() != 1 && fields.integer() != 2) {
          refuse(fmt::format("model_type {} (1, unigram, and 2, BPE, are)", fields.integer()));
        }
        model.method = static_cast<SentenceModel::Method>(fields.integer());
        break;
      case 24:
        if (fields.flag()) refuse("treat_whitespace_as_suffix");
        break;
      case 35:
        model.byte_fallback = fields.flag();
        break;
      case 42:
        end_id = static_cast<std::int32_t>(fields.integer());
        break;
      case 44:
        model.unknown_text = fields.text();
        break;
      default:
        break;
    }
  }
}

void read_normalizer(Fields fields, SentenceModel& model) {
  while (fields.next()) {
    if (fields.number() == 2) model.charsmap = fields.text();
    if (fields.number() == 3) model.dummy_prefix = fields.flag();
    if (fields.number() == 4) model.remove_extra_blanks = fields.flag();
    if (fields.number() == 5 && !fields.flag()) refuse("escape_whitespaces = false");
  }
}

void read_denormalizer(Fields fields) {
  while (fields.next()) {
    if (fields.number() == 2 && !fields.text().empty()) refuse("a denormalizer");
  }
}

}  // namespace

SentenceModel read_sentence_model(std::string_view bytes) {
  SentenceModel model;
  std::int64_t end_id = 2;
  Fields fields(bytes, 0);
  while (fields.next()) {
    if (fields.number() == 1) model.pieces.push_back(read_piece(fields.message(), model.pieces.size()));
    if (fields.number() == 2) read_trainer(fields.message(), model, end_id);
    if (fields.number() == 3) read_normalizer(fields.message(), model);
    if (fields.number() == 5) read_denormalizer(fields.message());
  }
  const auto size = static_cast<std::int64_t>(model.pieces.size());
  if (end_id >= 0 && end_id < size &&
      model.pieces[static_cast<std::size_t>(end_id)].type == SentenceModel::Type::kControl) {
    model.end_of_document = static_cast<std::int32_t>(end_id);
  }
  return model;
}

}  // namespace quipu
