#include "models/segment_memory.h"

#include <algorithm>

#include "base/rng.h"
#include "grad/ops_shape.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

enum Leaf : std::size_t { kMemory, kWritten, kOpen };

constexpr std::uint64_t kRoundSite = rng_site("segment");

std::size_t at(Index lane) { return static_cast<std::size_t>(lane); }

}  // namespace

/// Tokens [begin, begin + count) of a lane, in one segment.
struct SegmentMemory::Piece {
  Index begin, count;
  bool fresh;    ///< a document starts
  bool opens;    ///< the memory is read before them,
  bool closes;   ///< and written behind them
  bool learned;  ///< the document's first segment
};

/// What the stack reads at a time, one piece a lane at most, and where each row comes from and goes to.
struct SegmentMemory::Round {
  Layout layout;
  std::vector<Index> rows;    ///< into [learned memory; memory; tokens]
  std::vector<Index> memory;  ///< into [memory; rows that the stack gave]
  std::vector<Index> hidden;  ///< into [hidden rows so far; rows that the stack gave]
};

SegmentMemory::SegmentMemory(const Stack& stack, ModelConfig& config)
    : stack_(stack), memory_tokens_(config.memory_tokens), length_(config.length), dim_(config.dim) {
  if (config.memory_mask.empty()) config.memory_mask = stack.suits().memory_mask;
  if (config.memory_state.empty()) config.memory_state = stack.suits().memory_state;
  if (config.memory_mask != "causal" && config.memory_mask != "blocks")
    throw UsageError("--memory-mask {}: is unknown; there are causal, blocks", config.memory_mask);
  if (config.memory_state != "fresh" && config.memory_state != "carried")
    throw UsageError("--memory-state {}: is unknown; there are fresh, carried", config.memory_state);
  blocks_ = config.memory_mask == "blocks";
  carried_ = config.memory_state == "carried";
  for (const Block& block : stack.blocks()) {
    if (blocks_ && !block.mixer().sees_blocks())
      throw UsageError("--memory-mask blocks: a mixer of --mixer {} sees no later token; use causal", config.mixer);
    if (carried_ && block.mixer().memory() == Memory::fixed_length)
      throw UsageError(
          "--memory-state carried: a mixer of --mixer {} has a fixed length, which a second segment would "
          "exceed; use fresh",
          config.mixer);
  }
  tokens_ = Parameter({memory_tokens_, dim_}, normal(0.02 * config.embedding_scale), {.decay = false});
}

ModelState SegmentMemory::initial_state(Index lanes) const {
  ModelState state = stack_.initial_state(lanes);
  State memory;
  memory.add_real("memory", "M D", Tensor::zeros({lanes, memory_tokens_, dim_}));
  memory.add_integer("segments", lanes);
  memory.add_integer("position", lanes);
  state.layers.push_back(std::move(memory));
  return state;
}

void SegmentMemory::reset(ModelState& state, Index lane) const {
  stack_.reset(state, lane);
  state.layers.back().set_lane(lane, initial_state(1).layers.back());
}

Index SegmentMemory::state_bytes(Index length) const {
  const Index segments = length / length_, open = length % length_;
  Index rows = open > 0 ? open + memory_tokens_ : 0;
  if (carried_) rows += segments * (length_ + 2 * memory_tokens_);
  return stack_.state_bytes(rows) + memory_tokens_ * dim_ * static_cast<Index>(sizeof(float)) +
         2 * static_cast<Index>(sizeof(std::int64_t));
}

std::vector<std::vector<SegmentMemory::Piece>> SegmentMemory::cut(const Layout& layout, const State& memory) const {
  std::vector<std::vector<Piece>> pieces(at(layout.batch));
  for (Index lane = 0; lane < layout.batch; ++lane) {
    Index open = memory.integers(kOpen)[at(lane)];
    bool learned = memory.integers(kWritten)[at(lane)] == 0;
    for (const Span& span : layout.spans(lane)) {
      if (span.fresh) open = 0, learned = true;
      for (Index begin = span.begin; begin < span.end;) {
        const Index count = std::min(length_ - open, span.end - begin);
        const bool closes = open + count == length_;
        pieces[at(lane)].push_back({begin, count, span.fresh && begin == span.begin, open == 0, closes, learned});
        begin += count;
        open = closes ? 0 : open + count;
        learned = learned && !closes;
      }
    }
  }
  return pieces;
}

SegmentMemory::Round SegmentMemory::plan(const std::vector<const Piece*>& pieces, const Layout& layout) const {
  const Index lanes = layout.batch, m = memory_tokens_;
  Round round{{.batch = lanes, .length = 0, .lengths = {}, .starts = {}, .blocks = {}}, {}, {}, {}};
  round.layout.starts.resize(at(lanes));
  if (blocks_) round.layout.blocks.resize(at(lanes));
  for (const Piece* piece : pieces)
    round.layout.lengths.push_back(piece ? piece->opens * m + piece->count + piece->closes * m : 0);
  const Index length = round.layout.length = *std::ranges::max_element(round.layout.lengths);
  round.rows.assign(at(lanes * length), -1);
  for (Index i = 0; i < lanes * m; ++i) round.memory.push_back(i);
  for (Index i = 0; i < lanes * layout.length; ++i) round.hidden.push_back(i);

  for (Index lane = 0; lane < lanes; ++lane) {
    const Piece* piece = pieces[at(lane)];
    if (piece == nullptr) continue;
    if (piece->fresh || (piece->opens && !carried_)) round.layout.starts[at(lane)].push_back(0);
    Index row = lane * length;
    const auto put_memory = [&] {
      if (blocks_) round.layout.blocks[at(lane)].push_back({row - lane * length, row - lane * length + m});
      for (Index i = 0; i < m; ++i) round.rows[at(row++)] = piece->learned ? i : m + lane * m + i;
    };
    if (piece->opens) put_memory();
    for (Index t = piece->begin; t < piece->begin + piece->count; ++t, ++row) {
      round.rows[at(row)] = m + lanes * m + lane * layout.length + t;
      round.hidden[at(lane * layout.length + t)] = lanes * layout.length + row;
    }
    if (!piece->closes) continue;
    for (Index i = 0; i < m; ++i) round.memory[at(lane * m + i)] = lanes * m + row + i;
    put_memory();
  }
  return round;
}

Var SegmentMemory::forward(Tape& tape, const Var& rows, const Context& context, ModelState& state) const {
  const Layout& layout = context.layout;
  const auto pieces = cut(layout, state.layers.back());
  std::size_t rounds = 0;
  for (const auto& lane : pieces) rounds = std::max(rounds, lane.size());
  Var hidden(Tensor::zeros(rows.shape()));
  for (std::size_t r = 0; r < rounds; ++r) {
    std::vector<const Piece*> now;
    for (const auto& lane : pieces) now.push_back(r < lane.size() ? &lane[r] : nullptr);
    const Round round = plan(now, layout);
    Var& memory = state.layers.back().real(kMemory);
    for (std::size_t lane = 0; lane < now.size(); ++lane)
      if (now[lane] != nullptr && now[lane]->opens) state.position[lane] = 0;

    const Var in =
        gather_rows(tape, {tokens_.var(), memory, rows}, round.rows, {layout.batch, round.layout.length, dim_});
    const Context inside{.layout = round.layout,
                         .training = context.training,
                         .keep_state = context.keep_state || r + 1 < rounds,
                         .seed = r == 0 ? context.seed : Rng(context.seed, context.step, kRoundSite).bits(r),
                         .step = context.step,
                         .dropout = context.dropout};
    const Var out = stack_.forward(tape, in, inside, state);
    memory = gather_rows(tape, {memory, out}, round.memory, memory.shape());
    hidden = gather_rows(tape, {hidden, out}, round.hidden, hidden.shape());

    State& counts = state.layers.back();
    for (std::size_t lane = 0; lane < now.size(); ++lane) {
      if (now[lane] == nullptr) continue;
      const Piece& piece = *now[lane];
      std::int64_t &written = counts.integers(kWritten)[lane], &open = counts.integers(kOpen)[lane];
      if (piece.fresh) written = 0;
      open = piece.closes ? 0 : (piece.opens ? 0 : open) + piece.count;
      written += piece.closes ? 1 : 0;
    }
    forget_segments(state);
  }
  return hidden;
}

/// Between segments nothing but the memory is kept, where states do not cross. (A lane that waits for others keeps what
/// is left until its next segment begins anew.)
void SegmentMemory::forget_segments(ModelState& state) const {
  State& memory = state.layers.back();
  if (carried_ || std::ranges::any_of(memory.integers(kOpen), [](auto open) { return open > 0; })) return;
  ModelState anew = stack_.initial_state(state.lanes());
  anew.layers.push_back(std::move(memory));
  state = std::move(anew);
}

/// Reads the memory rows of the lanes that stand at the begin (or at the end) of a segment.
void SegmentMemory::run_memory_rows(ModelState& state, bool opening) const {
  State& memory = state.layers.back();
  const Index lanes = state.lanes(), m = memory_tokens_;
  Layout layout{.batch = lanes, .length = m, .lengths = {}, .starts = {}, .blocks = {}};
  layout.starts.resize(at(lanes));
  if (blocks_) layout.blocks.assign(at(lanes), {{0, m}});
  std::vector<Index> rows(at(lanes * m), -1), kept;
  for (Index lane = 0; lane < lanes; ++lane) {
    const bool reads = memory.integers(kOpen)[at(lane)] == (opening ? 0 : length_);
    layout.lengths.push_back(reads ? m : 0);
    for (Index i = 0; i < m; ++i) kept.push_back(lane * m + i + (reads ? lanes * m : 0));
    if (!reads) continue;
    if (opening) state.position[at(lane)] = 0;
    if (opening && !carried_) layout.starts[at(lane)].push_back(0);
    const bool learned = memory.integers(kWritten)[at(lane)] == 0;
    for (Index i = 0; i < m; ++i) rows[at(lane * m + i)] = learned ? i : m + lane * m + i;
  }
  if (std::ranges::all_of(layout.lengths, [](Index length) { return length == 0; })) return;

  Tape tape(false);
  Var& held = memory.real(kMemory);
  const Var in = gather_rows(tape, {tokens_.var(), held}, rows, held.shape());
  const Var out = stack_.forward(tape, in, {.layout = layout}, state);
  if (opening) return;
  held = gather_rows(tape, {held, out}, kept, held.shape());
  for (Index lane = 0; lane < lanes; ++lane) {
    if (layout.lengths[at(lane)] == 0) continue;
    memory.integers(kOpen)[at(lane)] = 0;
    ++memory.integers(kWritten)[at(lane)];
  }
  forget_segments(state);
}

void SegmentMemory::step(Matrix rows, Matrix hidden, ModelState& state, Scratch& scratch) const {
  run_memory_rows(state, true);
  stack_.step(rows, hidden, state, scratch);
  for (std::int64_t& open : state.layers.back().integers(kOpen)) ++open;
  run_memory_rows(state, false);
}

}  // namespace quipu::inline QUIPU_REAL_NS
