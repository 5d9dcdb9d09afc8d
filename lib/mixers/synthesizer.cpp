#include <algorithm>
#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "mixers/heads.h"
#include "mixers/registry.h"
#include "mixers/token_cache.h"
#include "scan/position_attention.h"
#include "scan/positions.h"
#include "tensor/blas.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

enum class Kind { random, factorized, dense };

/// Synthesizer: attention whose weights are not made by comparing tokens, under a causal mask.
///   o_t = sum_{s<=t} softmax_s(l_t)[s] v_s,  y = W_o o;  logits l_t [N] over the positions of the model's length N:
///   random: R[t], a parameter a head;   factorized: R1[t] R2^T of rank r;   dense: W_2 relu(W_1 x_t + b_1) + b_2.
/// A stream longer than N is an error. State: the values v [B,N,H,V] of the document so far, position [B].
/// Source: arXiv:2005.00743.
class Synthesizer final : public Mixer {
 public:
  explicit Synthesizer(const MixerSpec& spec)
      : dim_(spec.dim),
        heads_(checked_heads(spec, std::max<Index>(1, spec.dim / 64))),
        width_(dim_ / heads_),
        length_(spec.length) {
    Options& options = spec.options;
    const std::string kind = options.choice("variant", "random", {"random", "factorized", "dense"},
                                            "where the logits come from: a table, two of lower rank, or the token");
    kind_ = kind == "random" ? Kind::random : kind == "factorized" ? Kind::factorized : Kind::dense;
    const bool fixed = options.flag("fixed", false, "tables stay as they were drawn (not for dense)");
    key_ = options.integer("rank", 8, 1, "of a factorized table");
    if (fixed && kind_ == Kind::dense) throw UsageError("--set fixed=true: there is no table with variant=dense");
    v_ = Linear(dim_, dim_, normal(0.02));
    o_ = Linear(dim_, dim_, normal(0.02));
    const ParameterTraits traits{.trainable = !fixed, .decay = !fixed, .by_position = true};
    if (kind_ == Kind::random) table_ = Parameter({heads_, length_, length_}, normal(1), traits);
    if (kind_ == Kind::factorized) {
      const Initializer start = normal(std::pow(static_cast<double>(key_), -0.25));  // logits of deviation 1
      rows_ = Parameter({heads_, length_, key_}, start, traits);
      keys_ = Parameter({heads_, length_, key_}, start, traits);
    }
    if (kind_ == Kind::dense) {
      key_ = width_;
      hidden_ = Linear(dim_, dim_, xavier_uniform(width_, dim_), true);
      keys_ = Parameter({heads_, length_, key_}, xavier_uniform(length_, key_), {.by_position = true});
      bias_ = undecayed({heads_, length_}, constant(0));
    }
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Layout& layout = context.layout;
    std::vector<std::int64_t>& position = state.integers(kPosition);
    require_within("synthesizer", token_positions(layout, position), length_);
    PositionAttentionInput in{.table = table_.var(), .q = rows_.var(), .keys = keys_.var(), .bias = bias_.var()};
    if (kind_ == Kind::dense) in.q = split_heads(activate(tape, hidden_(tape, x), Activation::relu), heads_);
    in.v = split_heads(v_(tape, x), heads_);
    const TokenCache cache(layout, position);
    in.v = cache.join(tape, state.real(kValues), in.v), in.past = cache.past();
    const Var o = position_attention(tape, in, layout);
    if (context.keep_state) {
      state.real(kValues) = cache.keep(tape, in.v, length_);
      position = cache.after();
    }
    return o_(tape, join_heads(o));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows;
    Scratch& scratch = *context.scratch;
    std::vector<std::int64_t>& position = state.integers(kPosition);
    require_within("synthesizer", position, length_);
    const Matrix v = scratch.take(lanes, dim_), o = scratch.take(lanes, dim_), q = scratch.take(lanes, dim_);
    const Matrix logits = scratch.take(1, length_);
    v_.step(v, x);
    if (kind_ == Kind::dense) {
      hidden_.step(q, x);
      activate_into(Activation::relu, q.data, q.data, lanes * dim_);
    }
    Real* const values = state.writable(kValues).data();
    for (Index b = 0; b < lanes; ++b) {
      std::int64_t& at = position[static_cast<std::size_t>(b)];
      Real* const cache = values + b * length_ * dim_;
      std::copy_n(v.row(b), dim_, cache + at * dim_);
      for (Index h = 0; h < heads_; ++h) {
        logits_at(logits.data, q.row(b) + h * width_, h, at);
        position_attention_step(logits.data, {cache + h * width_, at + 1, width_, dim_}, o.row(b) + h * width_);
      }
      ++at;
    }
    o_.step(y, o);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("v", "N H V", Tensor::zeros({lanes, length_, heads_, width_}));
    state.add_integer("position", lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    const auto present = [&](const char* name, Parameter& parameter) {
      if (parameter.shape().rank() > 0) visitor(name, parameter);
    };
    present("R", table_);
    present("R1", rows_);
    if (kind_ == Kind::dense) hidden_.visit(visitor, "dense_1");
    present(kind_ == Kind::dense ? "dense_2.weight" : "R2", keys_);
    present("dense_2.bias", bias_);
    v_.visit(visitor, "v_proj");
    o_.visit(visitor, "o_proj");
  }

  Memory memory() const override { return Memory::fixed_length; }
  double mixing_cost(Index length) const override {
    const Index by_query = kind_ == Kind::random ? 0 : heads_ * key_;
    return static_cast<double>(std::min(length, length_) * (dim_ + by_query));
  }
  BlockDefaults block() const override {
    return {.channel_mixer = "mlp",
            .norm = "layernorm",
            .positions = "sinusoidal",
            .embedding = embedding_beside_sinusoids};
  }

 private:
  enum Leaf : std::size_t { kValues, kPosition };

  /// Logits of head h at position p over 0..p;  q: [K] of the token, for dense.
  void logits_at(Real* logits, const Real* q, Index h, Index p) const {
    const Index seen = p + 1;
    if (kind_ == Kind::random) {
      std::copy_n(table_.value().data() + (h * length_ + p) * length_, seen, logits);
      return;
    }
    if (kind_ == Kind::factorized) q = rows_.value().data() + (h * length_ + p) * key_;
    if (bias_.bound()) std::copy_n(bias_.value().data() + h * length_, seen, logits);
    blas::multiply_vector(logits, {keys_.value().data() + h * length_ * key_, seen, key_, key_}, q,
                          bias_.bound() ? Real{1} : Real{0});
  }

  Index dim_, heads_, width_, length_, key_ = 0;
  Kind kind_ = Kind::random;
  Linear v_, o_, hidden_;
  Parameter table_, rows_, keys_, bias_;
};

}  // namespace

std::unique_ptr<Mixer> make_synthesizer(const MixerSpec& spec) { return std::make_unique<Synthesizer>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
