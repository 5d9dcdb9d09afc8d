#pragma once
#include "grad/tape.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

struct LogSumScanOutput {
  Var log_decay;  ///< g_t = z_{t-1} - z_t <= 0, [B,T,..]: what the earlier tokens keep of their share; 0 at a first one
  Var weight;     ///< w_t = e^{s_t - z_t}, [B,T,..]: the share of token t
  Var state;      ///< z after the last token, [B,..]
};

/// The running normaliser of softmax weights over time, channel by channel:  z_t = log(e^{z_{t-1}} + e^{s_t}).
/// logits s: [B,T,..];  state z: [B,..], kernels::kNoLogSum where nothing was read yet; undefined: nowhere. Documents
/// start with nothing; padding is never read, and its outputs are 0. Throws ShapeError where the two disagree.
/// Source: arXiv:2110.02488.
LogSumScanOutput log_sum_scan(Tape& tape, const Var& logits, const Var& state, const Layout& layout);

/// One token of n channels: z in place, g and w written.
void log_sum_scan_step(const Real* logits, Real* z, Real* log_decay, Real* weight, Index n);

}  // namespace quipu::inline QUIPU_REAL_NS
