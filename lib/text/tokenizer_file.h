#pragma once
#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace quipu {

/// Reads a tokenizer that another program made; what it is is told from the content:
///  - GPT-2's vocab.json and merges.txt (either file, with the other one beside it);
///  - Hugging Face's tokenizer.json (byte-level BPE);
///  - a text file of pieces as RWKV's World models have it;
///  - a SentencePiece .model;
///  - llama2.c's tokenizer.bin;
///  - a folder with one of them, under its usual name.
/// `gpt2:PATH` is the same as PATH.
///
/// Memory stays within a few times the size of the files. InputError that begins with the file's name where it is not
/// there, is none of these, or is damaged.
std::unique_ptr<Tokenizer> read_tokenizer_file(const std::string& path);

}  // namespace quipu
