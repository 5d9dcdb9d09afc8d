#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "models/sequence_model.h"
#include "train/sample.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Where a stream of tokens stands: a plain value that can be copied, saved and gone on from.
struct StreamState {
  ModelState memory;                  ///< of one lane, after all tokens but the waiting one
  std::vector<std::int32_t> waiting;  ///< the last token, not yet read; none before the first token
  std::int64_t tokens = 0;            ///< read and drawn, the waiting one included
  std::vector<std::int32_t> recent;   ///< for the repetition penalty, oldest first
};

/// Reads and draws one stream of tokens. Reading goes through the parallel form of the model, in chunks, at constant
/// memory; drawing through the recurrent form, one token at a time.
///
/// What is read between two calls of `end_piece`, `next` or `state` is one piece. The result depends on the pieces and
/// their tokens to the last bit, not on how many calls of `read` made a piece; other pieces agree to rounding.
class Generator {
 public:
  /// Large enough for the speed of the forward pass of training (test/bench/prompt_chunks.cpp), at little memory.
  static constexpr Index kChunk = 512;

  /// The model must outlive it. Only the first `tokens` of its vocabulary are drawn (0: all): a published model may
  /// have rows that its tokenizer has no token for.
  Generator(const SequenceModel& model, const SamplingOptions& options, Index chunk = kChunk, Index tokens = 0);

  /// Goes on from a state, in place of the start of a document.
  void resume(StreamState state);
  /// Takes the next tokens of the piece.
  void read(std::span<const std::int32_t> tokens);
  void end_piece();
  /// Predicts the token after those so far, draws it and takes it in. Throws InternalError before the first token, and
  /// NumericError where a logit is not finite.
  std::int32_t next();
  /// Ends the piece.
  StreamState state();
  /// What `state` would give here. The piece goes on as if it had not been asked.
  StreamState state_ahead() const;

  /// Read and drawn so far.
  std::int64_t tokens() const { return tokens_; }
  /// The last of them; -1: none.
  std::int32_t last_token() const { return waiting_.empty() ? -1 : waiting_.back(); }
  Index state_bytes() const { return model_.held_bytes(memory_); }

 private:
  void read_waiting();

  const SequenceModel& model_;
  std::size_t drawn_;  // tokens that can be drawn
  Sampler sampler_;
  std::size_t chunk_;
  ModelState memory_;
  std::vector<std::int32_t> waiting_;  // at most a chunk; the last token of the stream is always here
  std::int64_t tokens_ = 0;
  Scratch scratch_;
  std::vector<Real> logits_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
