#include "base/op_times.h"

#include <algorithm>

#include "base/error.h"

namespace quipu {

OpTimes::OpTimes() {
  if (detail::op_listener != nullptr) throw InternalError("op times: {} listeners in one thread, 1 can be", 2);
  restart();
  detail::op_listener = this;
}

OpTimes::~OpTimes() { detail::op_listener = nullptr; }

void OpTimes::restart() {
  if (open_.size() > 1) throw InternalError("op times: started again inside {} operations", open_.size() - 1);
  sums_.clear();
  open_ = {&*sums_.try_emplace({kOther, false}).first};
  mark_ = Clock::now();
}

void OpTimes::account() {
  const Clock::time_point now = Clock::now();
  open_.back()->second.time += now - mark_;
  mark_ = now;
}

void OpTimes::enter(const char* op, bool backward) {
  account();
  auto& sum = *sums_.try_emplace({op, backward}).first;
  if (open_.back() != &sum) ++sum.second.calls;
  open_.push_back(&sum);
}

void OpTimes::leave() {
  account();
  open_.pop_back();
}

std::vector<OpTimes::Line> OpTimes::lines() {
  account();
  std::vector<Line> lines;
  for (const auto& [key, sum] : sums_)
    lines.push_back({std::string(key.first), key.second, sum.calls, std::chrono::duration<double>(sum.time).count()});
  std::ranges::stable_sort(lines, std::greater{}, &Line::seconds);
  return lines;
}

}  // namespace quipu
