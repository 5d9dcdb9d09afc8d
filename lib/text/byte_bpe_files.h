#pragma once
#include <string_view>

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

}  // namespace quipu
