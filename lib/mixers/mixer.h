#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grad/parameter.h"
#include "mixers/options.h"
#include "mixers/shared_parameters.h"
#include "mixers/state.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Reusable room for a recurrent step, so that it allocates nothing once it has run: `take` hands out pieces, `clear`
/// takes all back.
class Scratch {
 public:
  Matrix take(Index rows, Index cols);
  void clear() { used_ = 0; }

 private:
  std::vector<Tensor> pieces_;
  std::size_t used_ = 0;
};

/// Per-token values that a layer hands up the stack, to the layers of its kind above it. Gradients flow back along
/// them.
struct Carry {
  /// RWKV-7's values of its first layer: [B,T,D] in forward, [B,D] in a step.
  Var first_values;
  Matrix first_values_step{};
};

/// What a forward or a step knows beside its input.
struct Context {
  const Layout& layout;
  bool training = false;   ///< dropout acts
  bool keep_state = true;  ///< false: the caller drops the state after the call, it need not be made
  std::uint64_t seed = 0;  ///< of the random numbers: seed, step and site
  std::uint64_t step = 0;
  double dropout = 0;
  Scratch* scratch = nullptr;  ///< of `step`
  Carry* carry = nullptr;      ///< of this token batch; null: a layer stands alone
};

/// Where a layer stands in its model.
struct Site {
  Index layer = 0;
  Index layers = 1;
};

/// What a mixer is built with. Reading `options` declares them.
struct MixerSpec {
  Index dim;
  Index heads;   ///< 0: the mixer's published default
  Index length;  ///< of a training window or segment, in rows: the length of mixers of fixed length
  Site site;
  Options& options;
  SharedParameters& shared;
};

/// How a mixer's memory behaves as a stream goes on.
enum class Memory { fixed, growing, fixed_length };

/// The block that suits a mixer, where the user does not say.
struct BlockDefaults {
  std::string channel_mixer = "swiglu";  ///< or "none"
  /// Options of that channel mixer that differ from its own defaults.
  std::map<std::string, std::string> channel_options{};
  std::string norm = "rmsnorm";
  std::string positions = "none";  ///< none, learned, sinusoidal
  bool tied_head = false;
  bool embedding_norm = false;  ///< a norm right after the embedding
  bool post_norm = false;       ///< x = norm(x + f(x)) in place of x += f(norm x)
  bool final_norm = true;       ///< a norm before the head
  bool head_bias = false;
  bool scaled_embedding = false;  ///< the embedding is multiplied by sqrt(D)
  /// With memory tokens around segments: their mask, and whether states cross the segments' boundaries.
  std::string memory_mask = "causal", memory_state = "fresh";
  /// How embedding and head [vocab,D] start; empty: normal(0.02).
  std::function<Initializer(Index vocab, Index dim)> embedding{}, head{};
};

/// A layer that maps x [B,T,D] to y [B,T,D] and carries a state: token mixers (attention, gated slots, ..) and channel
/// mixers (MLP, ..) alike.
class Mixer {
 public:
  virtual ~Mixer() = default;

  /// Parallel form. Replaces `state` by the state after the last token (unless `keep_state` is off), on the tape. The
  /// layout says where documents start and padding begins; rows of padding may hold anything finite.
  virtual Var forward(Tape& tape, const Var& x, const Context& context, State& state) const = 0;
  /// Recurrent form: one token a lane.  x, y: [B,D]. No tape; allocates nothing (a growing cache grows amortised).
  virtual void step(Matrix x, Matrix y, const Context& context, State& state) const = 0;
  /// Before the first token of a document.
  virtual State initial_state(Index lanes) const = 0;
  /// Puts one lane back to its initial state (a document starts).
  virtual void reset(State& state, Index lane) const { state.set_lane(lane, initial_state(1)); }

  virtual void visit(const ParameterVisitor& visitor) = 0;

  virtual Memory memory() const { return Memory::fixed; }
  /// Whether x + mixing, normalised, is what `forward` and `step` give: the block adds nothing and normalises nothing.
  virtual bool owns_residual() const { return false; }
  /// Whether it heeds the blocks of a layout.
  virtual bool sees_blocks() const { return false; }
  /// Bytes of one lane's state after `length` tokens.
  virtual Index state_bytes(Index) const { return initial_state(1).bytes(); }
  /// Of the bytes of `state`, those that wait for tokens to come: the rows ahead of a cache that grows in steps.
  virtual Index spare_bytes(const State&) const { return 0; }
  /// Multiply-adds a token of the mixing itself, without the projections, at position `length` of a stream.
  virtual double mixing_cost(Index length) const = 0;
  virtual BlockDefaults block() const { return {}; }
};

/// Embeddings of deviation D^-1/2: times sqrt(D), as sinusoidal positions have them, as large as the positions.
Initializer embedding_beside_sinusoids(Index vocab, Index dim);

/// heads, or the mixer's default; throws UsageError unless it divides `dim`.
Index checked_heads(const MixerSpec& spec, Index standard);
/// Channels a head where all heads together have `part` of the model's width: a multiple of `step`, with a note where
/// that is not what `part`, the option `option`, says.
Index expanded_head_width(const MixerSpec& spec, Index heads, double part, const char* option, Index step = 1);
/// The heads of a mixer whose published size says how many channels a head has, the option `option`: --heads wins, and
/// a width that the size does not divide takes its largest divisor below it, with a note.
Index heads_of_size(const MixerSpec& spec, Index published, const char* option, const char* help);

}  // namespace quipu::inline QUIPU_REAL_NS
