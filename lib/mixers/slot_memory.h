#pragma once
#include "grad/ops_norm.h"
#include "scan/outer_scan.h"
#include "tensor/kernels.h"

// A memory of M slots a head, each with a key and a value: written into by weights over the slots, read by attention
// over them.
//   hk_t = hk_{t-1} diag(e^g) + k w^T [K,M];   a = softmax(c q hk_t) [M];   hv_t = diag(e^g) hv_{t-1} + u v^T [M,V];
//   o = a hv_t.
namespace quipu::inline QUIPU_REAL_NS {

struct SlotMemoryInput {
  Var q{};             ///< [B,T,H,K]
  Var k{};             ///< [B,T,Hs,K]; query head h reads the slots of head h / (H / Hs)
  Var v{};             ///< [B,T,Hs,V]
  Var key_weight{};    ///< w [B,T,Hs,M]: how a token writes its key into the slots
  Var value_weight{};  ///< u [B,T,Hs,M]: and its value
  Var log_decay{};     ///< g [B,T,Hs,M]; undefined: the slots keep everything
  Real scale = 1;      ///< c
};

/// o [B,T,H,V];  keys hk [B,Hs,K,M] and values hv [B,Hs,M,V] are replaced by those after the last token.
inline Var slot_memory(Tape& tape, const SlotMemoryInput& in, const Layout& layout, Var& keys, Var& values) {
  const bool decays = in.log_decay.defined();
  const OuterScanOutput scores = outer_scan(tape,
                                            {.decay = decays ? Decay::value : Decay::none,
                                             .q = in.q,
                                             .k = in.k,
                                             .v = in.key_weight,
                                             .log_decay = in.log_decay,
                                             .state = keys},
                                            layout);
  const OuterScanOutput read = outer_scan(tape,
                                          {.decay = decays ? Decay::key : Decay::none,
                                           .q = softmax_rows(tape, scores.y, in.scale),
                                           .k = in.value_weight,
                                           .v = in.v,
                                           .log_decay = in.log_decay,
                                           .state = values},
                                          layout);
  keys = scores.state;
  values = read.state;
  return read.y;
}

/// One token of one head of slots.
struct SlotMemoryStep {
  Matrix q;  ///< [G,K], the queries that read it
  const Real *k, *v;
  const Real *key_weight, *value_weight;
  const Real* decay_factor = nullptr;  ///< e^g [M]; null: the slots keep everything
  Real scale = 1;
};

/// o: [G,V];  keys hk [K,M] and values hv [M,V] in place;  scores: room for [G,M].
inline void slot_memory_step(const SlotMemoryStep& in, Matrix keys, Matrix values, Matrix scores, Matrix o) {
  const bool decays = in.decay_factor != nullptr;
  outer_scan_step(decays ? Decay::value : Decay::none, in.q, in.k, in.key_weight, in.decay_factor, keys, nullptr,
                  scores, nullptr);
  for (Index g = 0; g < scores.rows; ++g) kernels::softmax_row(scores.row(g), scores.row(g), in.scale, scores.cols);
  outer_scan_step(decays ? Decay::key : Decay::none, scores, in.value_weight, in.v, in.decay_factor, values, nullptr, o,
                  nullptr);
}

}  // namespace quipu::inline QUIPU_REAL_NS
