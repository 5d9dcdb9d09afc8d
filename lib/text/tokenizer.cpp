#include "text/tokenizer.h"

#include "base/error.h"
#include "base/rng.h"
#include "text/byte_bpe_tokenizer.h"
#include "text/byte_tokenizer.h"
#include "text/sentence_tokenizer.h"
#include "text/subword_tokenizer.h"
#include "text/word_tokenizer.h"
#include "text/world_tokenizer.h"

namespace quipu {

namespace {

/// FNV-1a over the length and the bytes of one field.
std::uint64_t mix_field(std::uint64_t hash, std::string_view field) {
  hash = mix64(hash ^ field.size());
  for (const char c : field) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

std::uint64_t TokenizerData::digest() const {
  std::uint64_t hash = mix_field(0, kind);
  for (const Blob& blob : blobs) hash = mix_field(mix_field(hash, blob.name), blob.bytes);
  return mix64(hash);
}

void Tokenizer::append_text(std::int32_t /*previous*/, std::int32_t id, std::string& text) const {
  text += token_bytes(id);
}

void Tokenizer::encode(std::string_view text, std::vector<std::int32_t>& tokens) const {
  encode_some(text, {}, tokens);
}

void Tokenizer::use_special_tokens() {
  throw UsageError("--special-tokens: the tokenizer {} has no special tokens; leave the option out", describe(*this));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  encode_some(text, {}, tokens);
  return tokens;
}

std::string Tokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  std::int32_t previous = -1;
  for (const std::int32_t id : tokens) {
    append_text(previous, id, text);
    previous = id;
  }
  return text;
}

void Tokenizer::require_in_vocabulary(std::int32_t id) const {
  if (id >= 0 && id < vocab_size()) return;
  throw InputError("token id {} is outside the vocabulary (size {}); encode the text with the model's tokenizer", id,
                   vocab_size());
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerData& data) {
  if (data.kind == "bytes") return std::make_unique<ByteTokenizer>();
  if (data.kind == "words") return WordTokenizer::from_data(data);
  if (data.kind == "bpe" || data.kind == "unigram") return SubwordTokenizer::from_data(data);
  if (data.kind == "byte-bpe") return ByteBpeTokenizer::from_data(data);
  if (data.kind == "world") return WorldTokenizer::from_data(data);
  if (data.kind == "sentencepiece") return SentenceTokenizer::from_data(data);
  throw InputError(
      "tokenizer: kind '{}' is unknown; this version reads bytes, words, bpe, unigram, byte-bpe, world and "
      "sentencepiece",
      data.kind);
}

std::string describe(const Tokenizer& tokenizer) {
  if (tokenizer.kind() == "bytes") return "bytes";
  return fmt::format("{}:{}", tokenizer.kind(), tokenizer.vocab_size());
}

}  // namespace quipu
