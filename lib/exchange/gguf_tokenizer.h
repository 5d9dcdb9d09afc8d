#pragma once
#include <memory>

#include "store/tensor_source.h"
#include "text/tokenizer.h"

namespace quipu {

/// The tokenizer in a GGUF file's metadata: byte-level BPE ("gpt2"), SentencePiece BPE ("llama") or RWKV World
/// ("rwkv"). Null where there is none. Throws InputError where it is damaged, or of a kind or with a pre-tokenizer that
/// is not known here.
std::unique_ptr<Tokenizer> read_gguf_tokenizer(const TensorSource& source);

}  // namespace quipu
