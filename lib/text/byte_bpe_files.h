#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_bpe_tokenizer.h"

namespace quipu {

/// GPT-2's pair of files: `vocab.json` (spelled token to id) and `merges.txt` (a merge a line, behind a line that
/// begins with `#version`). `<|endoftext|>`, where the vocabulary has it, is special and ends documents.
///
/// InputError, in both, where the files do not make a tokenizer: what is wrong, with both numbers.
ByteBpeModel read_gpt2_files(std::string_view vocab_json, std::string_view merges_txt);

/// Hugging Face's `tokenizer.json` with a byte-level BPE model. Whatever it asks for that is not read here (another
/// model, normalizer, pre-tokenizer or option of one) is refused by its name. What would be added to the tokens of a
/// text (post_processor, padding) or cut from them (truncation) is left out.
ByteBpeModel read_tokenizer_json(std::string_view text);

/// What a token of a list is.
enum class ListedToken {
  kText,     ///< spelled in the bytes' alphabet
  kLiteral,  ///< stands in text literally
  kSpecial,
  kNone,  ///< no token has this id
};

/// The same model from lists: tokens by id, what they are, and merges as in merges.txt. Patterns, the options and the
/// end of a document are left to the caller. InputError as above.
ByteBpeModel make_byte_bpe(const std::vector<std::string>& tokens, const std::vector<ListedToken>& kinds,
                           const std::vector<std::string>& merges);

}  // namespace quipu
