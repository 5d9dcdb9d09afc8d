#pragma once
#include <string>
#include <vector>

#include "text/tokenizer_data.h"

namespace quipu {

struct TokenizerFile {
  std::string name;
  std::string content;
};

/// A tokenizer as the files that other programs look for in a model's folder; read_tokenizer_file() has the same
/// encodings of them:
///  - `byte-bpe`: tokenizer.json, and, where these say all, vocab.json and merges.txt; `bytes`: tokenizer.json;
///  - `sentencepiece`: tokenizer.model;
///  - `world`: rwkv_vocab_v20230424.txt;
/// and for Hugging Face's loader a tokenizer_config.json, but for `world`. Empty for the other kinds, which no other
/// program has. InputError where a token is none that such a file can hold.
std::vector<TokenizerFile> published_tokenizer(const TokenizerData& data);

}  // namespace quipu
