#include "train/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"

namespace quipu {
namespace {

constexpr std::array kTable = {
    OptimizerEntry{OptimizerKind::kAdamW, "adamw", "Adam with decoupled weight decay"},
    OptimizerEntry{OptimizerKind::kAdam, "adam", "Adam; weight decay is added to the gradient"},
    OptimizerEntry{OptimizerKind::kNag, "nag", "Nesterov's accelerated gradient; --beta1 is its momentum"},
};

/// Elements a thread takes at a time.
constexpr Index kBlock = 16384;
/// Independent sums within a block: enough for the widest vectors, and the same on every CPU.
constexpr Index kLanes = 16;

void check_options(const OptimizerOptions& o) {
  for (const auto& [name, beta] : {std::pair{"beta1", o.beta1}, std::pair{"beta2", o.beta2}}) {
    if (!(beta >= 0 && beta < 1)) throw UsageError("optimizer: {} is {}; give 0 or more and less than 1", name, beta);
  }
  if (!(o.eps > 0) || !std::isfinite(o.eps)) throw UsageError("optimizer: eps is {}; give more than 0", o.eps);
  if (!(o.weight_decay >= 0) || !std::isfinite(o.weight_decay)) {
    throw UsageError("optimizer: weight decay is {}; give 0 or more", o.weight_decay);
  }
}

}  // namespace

std::span<const OptimizerEntry> optimizer_table() { return kTable; }

OptimizerKind optimizer_from_name(std::string_view name) {
  std::string names;
  for (const OptimizerEntry& entry : kTable) {
    if (entry.name == name) return entry.kind;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw UsageError("optimizer: no optimizer is called '{}'; choose one of {}", name, names);
}

std::string_view optimizer_name(OptimizerKind kind) {
  for (const OptimizerEntry& entry : kTable) {
    if (entry.kind == kind) return entry.name;
  }
  throw InternalError("optimizer {} is not in the table", static_cast<int>(kind));
}

inline namespace QUIPU_REAL_NS {
namespace {

double sum_of_squares(const Real* x, Index count) {
  std::array<double, kLanes> lane{};
  const Index whole = count - count % kLanes;
  for (Index i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (Index j = 0; j < kLanes; ++j) {
      const double value = x[i + j];
      lane[static_cast<std::size_t>(j)] += value * value;
    }
  }
  double sum = 0;
  for (const double partial : lane) sum += partial;
  for (Index i = whole; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

/// What one update multiplies with, rounded once.
struct AdamFactors {
  Real grad_scale;
  Real decay;  // adamw: lr wd
  Real l2;     // adam: wd
  Real beta1, one_minus_beta1, beta2, one_minus_beta2;
  Real step_size;   // lr / (1 - b1^t)
  Real root_scale;  // 1 / sqrt(1 - b2^t)
  Real eps;
};

void update_adam(Real* __restrict p, const Real* __restrict grad, Real* __restrict m, Real* __restrict v, Index count,
                 const AdamFactors& f) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) {
    const Real g = f.grad_scale * grad[i] + f.l2 * p[i];
    m[i] = f.beta1 * m[i] + f.one_minus_beta1 * g;
    v[i] = f.beta2 * v[i] + f.one_minus_beta2 * g * g;
    p[i] -= f.decay * p[i] + f.step_size * m[i] / (std::sqrt(v[i]) * f.root_scale + f.eps);
  }
}

struct NagFactors {
  Real grad_scale, l2, momentum, lr;
};

void update_nag(Real* __restrict p, const Real* __restrict grad, Real* __restrict m, Index count, const NagFactors& f) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) {
    const Real g = f.grad_scale * grad[i] + f.l2 * p[i];
    m[i] = f.momentum * m[i] + g;
    p[i] -= f.lr * (g + f.momentum * m[i]);
  }
}

AdamFactors adam_factors(const OptimizerOptions& o, const ParameterGroup& group, double lr, double grad_scale,
                         Index step) {
  const double t = static_cast<double>(step);
  const double decay = group.decay ? o.weight_decay : 0;
  const bool decoupled = o.kind == OptimizerKind::kAdamW;
  const auto real = [](double x) { return static_cast<Real>(x); };
  return {.grad_scale = real(grad_scale),
          .decay = real(decoupled ? lr * decay : 0),
          .l2 = real(decoupled ? 0 : decay),
          .beta1 = real(o.beta1),
          .one_minus_beta1 = real(1 - o.beta1),
          .beta2 = real(o.beta2),
          .one_minus_beta2 = real(1 - o.beta2),
          .step_size = real(lr / (1 - std::pow(o.beta1, t))),
          .root_scale = real(1 / std::sqrt(1 - std::pow(o.beta2, t))),
          .eps = real(o.eps)};
}

}  // namespace

GradientNorm grad_norm(std::span<const Real> grads) {
  const Index count = std::ssize(grads);
  const Index blocks = (count + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
#pragma omp parallel for schedule(static) if (blocks > 1)
  for (Index b = 0; b < blocks; ++b) {
    const Index begin = b * kBlock;
    sums[static_cast<std::size_t>(b)] = sum_of_squares(grads.data() + begin, std::min(kBlock, count - begin));
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  GradientNorm out{.norm = std::sqrt(total)};
  if (!std::isfinite(total)) {
    const auto bad = std::find_if_not(grads.begin(), grads.end(), [](Real g) { return std::isfinite(g); });
    if (bad != grads.end()) out.first_bad = bad - grads.begin();
  }
  return out;
}

double clip_coefficient(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

Optimizer::Optimizer(OptimizerOptions options, std::vector<ParameterGroup> groups)
    : options_(options), groups_(std::move(groups)) {
  check_options(options_);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const ParameterGroup& group = groups_[i];
    if (group.begin < size_ || group.end < group.begin) {
      throw ShapeError("optimizer: a group from {} to {} after one that ends at {}; groups are in order, apart",
                       group.begin, group.end, size_);
    }
    size_ = group.end;
    for (Index begin = group.begin; begin < group.end; begin += kBlock) {
      blocks_.push_back({begin, std::min(begin + kBlock, group.end), i});
    }
  }
  m_.resize(static_cast<std::size_t>(size_));
  if (options_.kind != OptimizerKind::kNag) v_.resize(static_cast<std::size_t>(size_));
}

void Optimizer::step(std::span<Real> params, std::span<const Real> grads, double lr, double grad_scale) {
  if (params.size() != grads.size() || std::ssize(params) < size_) {
    throw ShapeError("optimizer: {} parameters and {} gradients where the groups end at {}; give equal arrays",
                     params.size(), grads.size(), size_);
  }
  ++steps_taken_;
  const Index blocks = std::ssize(blocks_);
#pragma omp parallel for schedule(static) if (blocks > 1)
  for (Index b = 0; b < blocks; ++b) {
    const Block& block = blocks_[static_cast<std::size_t>(b)];
    const ParameterGroup& group = groups_[block.group];
    const Index begin = block.begin, count = block.end - block.begin;
    Real* p = params.data() + begin;
    const Real* g = grads.data() + begin;
    if (options_.kind == OptimizerKind::kNag) {
      const double decay = group.decay ? options_.weight_decay : 0;
      update_nag(p, g, m_.data() + begin, count,
                 {static_cast<Real>(grad_scale), static_cast<Real>(decay), static_cast<Real>(options_.beta1),
                  static_cast<Real>(lr * group.lr_scale)});
    } else {
      update_adam(p, g, m_.data() + begin, v_.data() + begin, count,
                  adam_factors(options_, group, lr * group.lr_scale, grad_scale, steps_taken_));
    }
  }
}

std::vector<Optimizer::StateArray> Optimizer::state() {
  std::vector<StateArray> out{{"m", m_}};
  if (options_.kind != OptimizerKind::kNag) out.push_back({"v", v_});
  return out;
}

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
