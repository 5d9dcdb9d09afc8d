#include "profile/workload.h"

#include <algorithm>
#include <functional>

#include "base/op_times.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "profile/cell.h"
#include "profile/cost.h"
#include "tensor/arena.h"
#include "train/model_checkpoint.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr double kLearningRate = 1e-4;

}  // namespace

std::vector<std::int32_t> random_tokens(Index count, Index vocab, std::uint64_t seed) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  const Rng rng(seed, 0, rng_site("profile"));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(rng.below(i, static_cast<std::uint64_t>(vocab)));
  return tokens;
}

std::optional<ModelState> read_tokens(const LanguageModel& model, Index length, Index lanes, std::uint64_t seed) {
  ModelState state = model.initial_state(lanes);
  const Index most = prompt_chunk(lanes);
  for (Index begin = 0; begin < length; begin += most) {
    if (stop_requested()) return std::nullopt;
    const Index chunk = std::min(most, length - begin);
    const auto tokens = random_tokens(lanes * chunk, model.vocab(), seed + static_cast<std::uint64_t>(begin));
    Tape tape(false);
    const Layout layout = Layout::plain(lanes, chunk);
    ModelState next = state;
    model.forward(tape, tokens, Context{.layout = layout}, next);
    state.take(std::move(next));
  }
  return state;
}

std::optional<Spread> time_runs(Workload& workload, double budget_s) {
  const auto once = [&]() -> std::optional<double> {
    if (!workload.ready()) return std::nullopt;
    const Stopwatch watch;
    if (!workload.run()) return std::nullopt;
    return watch.seconds();
  };
  const std::optional<double> warm_up = once();
  if (!warm_up) return std::nullopt;
  constexpr double kPatience = 8;
  if (*warm_up >= kPatience * budget_s || !workload.is_ready_within(budget_s)) return spread_of({&*warm_up, 1});
  std::vector<double> seconds;
  const Stopwatch all;
  do {
    const std::optional<double> one = once();
    if (!one) return std::nullopt;
    seconds.push_back(*one);
  } while (workload.is_ready_within(budget_s - all.seconds()) && all.seconds() < budget_s &&
           !is_settled(spread_of(seconds)));
  return spread_of(seconds);
}

std::optional<std::vector<ProfileOp>> watch_runs(Workload& workload, double budget_s) {
  std::vector<ProfileOp> sums;
  const Stopwatch all;
  double runs = 0;
  do {
    if (!workload.ready()) return std::nullopt;
    OpTimes times;
    if (!workload.run()) return std::nullopt;
    ++runs;
    for (const OpTimes::Line& line : times.lines()) {
      auto sum =
          std::ranges::find_if(sums, [&](const auto& s) { return s.op == line.op && s.backward == line.backward; });
      if (sum == sums.end()) sum = sums.insert(sum, {line.op, line.backward, 0, 0});
      sum->calls += static_cast<double>(line.calls), sum->seconds += line.seconds;
    }
  } while (all.seconds() < budget_s && workload.is_ready_within(budget_s - all.seconds()));
  for (ProfileOp& sum : sums) sum.calls /= runs, sum.seconds /= runs;
  std::ranges::stable_sort(sums, std::greater{}, &ProfileOp::seconds);
  return sums;
}

DecodeWorkload::DecodeWorkload(const LanguageModel& model, Index length, Index lanes, std::uint64_t seed)
    : Workload(lanes), model_(model), length_(length), stretch_(decode_stretch(length)), seed_(seed) {
  if (model.memory() == Memory::fixed_length) stretch_ = std::min(stretch_, model.config().length - length);
  drawn_ = stretch_;
  next_ = random_tokens(lanes, model.vocab(), seed + 1);
  logits_ = Tensor({lanes, model.vocab()});
}

bool DecodeWorkload::ready() {
  if (drawn_ < stretch_) return true;
  const Stopwatch watch;
  state_ = {};
  std::optional<ModelState> read = read_tokens(model_, length_, lanes_, seed_);
  if (!read) return false;
  state_ = std::move(*read);
  state_bytes_ = model_.held_bytes(state_);
  drawn_ = 0;
  if (stretch_ > 1) step();  // a cache that is full grows here
  read_s_ = watch.seconds();
  return true;
}

void DecodeWorkload::step() {
  model_.step(next_, state_, scratch_, logits_.matrix());
  ++drawn_;
}

bool DecodeWorkload::run() {
  step();
  return !stop_requested();
}

bool PrefillWorkload::run() {
  const std::optional<ModelState> state = read_tokens(model_, length_, lanes_, seed_);
  if (state) state_bytes_ = model_.held_bytes(*state);
  return state.has_value();
}

TrainWorkload::TrainWorkload(LanguageModel& model, Index length, Index lanes, std::uint64_t seed)
    : Workload(lanes),
      model_(model),
      length_(length),
      seed_(seed),
      optimizer_({}, optimizer_groups(model.parameters())),
      layout_(Layout::fresh(lanes, length)),
      tokens_(random_tokens(lanes * length, model.vocab(), seed)),
      targets_(random_tokens(lanes * length, model.vocab(), seed + 1)) {}

bool TrainWorkload::run() {
  Parameters& parameters = model_.parameters();
  {
    const OpScope op_scope("optimizer");
    parameters.zero_gradients();
  }
  const std::size_t before = arena::usage().in_use;
  {
    Tape tape(true);
    ModelState state = model_.initial_state(lanes_);
    const Context context{.layout = layout_, .training = true, .keep_state = false};
    const LossOutput out = model_.loss(tape, model_.forward(tape, tokens_, context, state), targets_);
    kept_bytes_ = static_cast<double>(arena::usage().in_use - before);
    tape.backward(out.loss);
  }
  const OpScope op_scope("optimizer");
  const GradientNorm norm = grad_norm(parameters.gradients());
  optimizer_.step(parameters.values(), parameters.gradients(), kLearningRate, clip_coefficient(norm.norm, 1));
  return !stop_requested();
}

std::optional<Index> TrainWorkload::state_bytes() {
  const std::optional<ModelState> state = read_tokens(model_, length_, lanes_, seed_);
  if (!state) return std::nullopt;
  return model_.held_bytes(*state);
}

}  // namespace quipu::inline QUIPU_REAL_NS
