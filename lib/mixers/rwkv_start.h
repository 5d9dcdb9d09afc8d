#pragma once
#include <cmath>
#include <functional>

#include "mixers/mixer.h"

/// What the versions of RWKV start from: vectors along the channels, and matrices.
namespace quipu::inline QUIPU_REAL_NS {

/// Of a layer in its stack: 0 to 1 upwards, and 1 to almost 0 upwards.
inline double rwkv_rising(Site site) {
  return site.layers > 1 ? static_cast<double>(site.layer) / static_cast<double>(site.layers - 1) : 0;
}
inline double rwkv_falling(Site site) { return 1 - static_cast<double>(site.layer) / static_cast<double>(site.layers); }

/// fn(i) for channel i.
inline Initializer by_channel(std::function<double(double i)> fn) {
  return [fn = std::move(fn)](std::span<Real> values, const Rng&) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Real>(fn(static_cast<double>(i)));
  };
}

/// (i / D)^exponent + more, the share of the current token in versions 4 and 5; the versions from 6 on take one minus
/// it.
inline Initializer rwkv_mix(Index dim, double exponent, double more = 0) {
  return by_channel([=](double i) { return std::pow(i / static_cast<double>(dim), exponent) + more; });
}
inline Initializer rwkv_maa(Index dim, double exponent, double more = 0) {
  return by_channel([=](double i) { return 1 - std::pow(i / static_cast<double>(dim), exponent) - more; });
}

/// Fast and slow channels: from low to low + span, as (i / (D-1))^exponent rises.
inline Initializer rwkv_decay_speed(Index dim, double low, double span, double exponent) {
  const double last = std::max<double>(1, static_cast<double>(dim - 1));
  return by_channel([=](double i) { return low + span * std::pow(i / last, exponent); });
}

/// Orthogonal, longer where it widens.
inline Initializer rwkv_orthogonal(Index out, Index in, double scale = 1) {
  const double widening = std::sqrt(static_cast<double>(out) / static_cast<double>(in));
  return orthogonal(out, in, scale * std::max(1.0, widening));
}

/// The block around all versions: layer norms, one right after the embedding, a channel mixer of its own kind.
inline BlockDefaults rwkv_block(const char* channel_version) {
  return {.channel_mixer = "rwkv_channel",
          .channel_options = {{"version", channel_version}},
          .norm = "layernorm",
          .embedding_norm = true,
          .embedding = [](Index, Index) { return uniform(1e-4); },
          .head = [](Index vocab, Index dim) { return rwkv_orthogonal(vocab, dim, 0.5); }};
}

}  // namespace quipu::inline QUIPU_REAL_NS
