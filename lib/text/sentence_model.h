#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quipu {

/// How SentencePiece writes a blank: U+2581. Pieces are kept in memory with a blank (U+0020) instead.
inline constexpr std::string_view kBlankMark = "\xe2\x96\x81";

/// What a SentencePiece model is made of, as far as it tells how text is encoded and decoded.
struct SentenceModel {
  enum class Method : std::uint32_t { kUnigram = 1, kBpe = 2 };
  /// SentencePiece's own numbers.
  enum class Type : std::uint32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Piece {
    std::string text;  ///< as in the file, blanks as U+2581
    float score = 0;
    Type type = Type::kNormal;
  };

  Method method = Method::kUnigram;
  std::vector<Piece> pieces;  ///< by id
  bool byte_fallback = false;
  bool dummy_prefix = true;         ///< a document begins with a blank
  bool remove_extra_blanks = true;  ///< runs of blanks become one, and none at the ends
  std::string charsmap;             ///< the rules of normalization, as SentencePiece compiles them; empty: none
  std::string unknown_text = " \xe2\x81\x87 ";
  std::int32_t end_of_document = -1;  ///< a control piece; -1: none
};

/// Reads a SentencePiece .model (a protocol buffer). Whatever a model asks for that is not read here is refused by
/// name. InputError where it is none, with the byte.
SentenceModel read_sentence_model(std::string_view bytes);

/// Reads llama2.c's tokenizer.bin: the vocabulary of a SentencePiece BPE model with bytes as pieces 3 to 258, without
/// normalization. InputError, with the piece and both numbers, where it is none.
SentenceModel read_llama2c_tokenizer(std::string_view bytes);

/// Whether `bytes` has the outer form of such a file.
bool is_llama2c_tokenizer(std::string_view bytes);

}  // namespace quipu
