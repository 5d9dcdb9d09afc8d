#pragma once
#include "models/stack.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The Recurrent Memory Transformer around any stack of causal mixers. A document is cut into segments of S tokens; the
/// stack reads [memory; S tokens; memory], m + S + m rows, and its output at the last m rows is the memory of the next
/// segment; the first segment has learned memory tokens. A document that ends before its segment does writes no memory
/// (one segment alone is the Memory Transformer of arXiv:2006.11527, in causal form). Source: arXiv:2207.06881.
///
/// A model's state has one entry behind those of the blocks: memory [B,m,D], and two counts a lane: segments written,
/// and tokens of the open segment. The rows before a segment are read with its first token, those behind it with its
/// last, however the input is cut.
class SegmentMemory {
 public:
  /// config.memory_tokens: m;  config.length: S. Throws UsageError where the mixers cannot be used so.
  SegmentMemory(const Stack& stack, ModelConfig& config);

  void visit(const ParameterVisitor& visitor) { visitor("memory.weight", tokens_); }
  /// Rows that the stack reads for one segment.
  static Index rows(const ModelConfig& config) { return config.length + 2 * config.memory_tokens; }

  ModelState initial_state(Index lanes) const;
  void reset(ModelState& state, Index lane) const;
  Index state_bytes(Index length) const;

  /// rows: [B,T,D], of tokens alone; so are the rows returned.
  Var forward(Tape& tape, const Var& rows, const Context& context, ModelState& state) const;
  /// rows, hidden: [B,D]. Where a segment begins or ends the parallel form reads the memory rows; else it allocates
  /// nothing.
  void step(Matrix rows, Matrix hidden, ModelState& state, Scratch& scratch) const;

 private:
  struct Piece;
  struct Round;
  std::vector<std::vector<Piece>> cut(const Layout& layout, const State& memory) const;
  Round plan(const std::vector<const Piece*>& pieces, const Layout& layout) const;
  void forget_segments(ModelState& state) const;
  void run_memory_rows(ModelState& state, bool opening) const;

  const Stack& stack_;
  Index memory_tokens_, length_, dim_;
  bool blocks_, carried_;
  Parameter tokens_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
