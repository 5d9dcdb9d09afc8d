#pragma once
#include "text/tokenizer.h"

namespace quipu {

/// `bytes`: token id = byte, a vocabulary of exactly 256. There is no token to end documents.
class ByteTokenizer final : public Tokenizer {
 public:
  std::string_view kind() const override { return "bytes"; }
  std::int64_t vocab_size() const override { return 256; }
  std::size_t encode_some(std::string_view text, TextPart part, std::vector<std::int32_t>& tokens) const override;
  std::size_t cut_after(std::string_view text, std::size_t from) const override;
  std::string_view token_bytes(std::int32_t id) const override;
  TokenizerData serialize() const override { return {"bytes", {}}; }
};

}  // namespace quipu
