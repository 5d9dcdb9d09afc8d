#include "base/stop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <limits>

namespace quipu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Clock::rep kNoDeadline = std::numeric_limits<Clock::rep>::max();

std::atomic<int> first_signal{0};
std::atomic<Clock::rep> deadline{kNoDeadline};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void on_stop_signal(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

bool deadline_passed() {
  const Clock::rep limit = deadline.load(std::memory_order_relaxed);
  return limit != kNoDeadline && Clock::now().time_since_epoch().count() >= limit;
}

}  // namespace

void install_stop_signals() {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    struct sigaction action = {};
    action.sa_handler = on_stop_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    if (signal == SIGINT) action.sa_flags |= static_cast<int>(SA_RESETHAND);  // the second one meets the default: death
    sigaction(signal, &action, nullptr);
  }
}

void set_time_limit(double seconds) {
  constexpr double kLongest = 1e9;  // some thirty years: far below the range of the clock
  const auto span = std::chrono::duration<double>(std::clamp(seconds, 0.0, kLongest));
  deadline = (Clock::now() + std::chrono::duration_cast<Clock::duration>(span)).time_since_epoch().count();
}

bool stop_requested() { return first_signal.load(std::memory_order_relaxed) != 0 || deadline_passed(); }

double time_left_s() {
  const Clock::rep limit = deadline.load(std::memory_order_relaxed);
  if (limit == kNoDeadline) return std::numeric_limits<double>::infinity();
  const Clock::duration left(limit - Clock::now().time_since_epoch().count());
  return std::max(0.0, std::chrono::duration<double>(left).count());
}

std::string stop_reason() {
  switch (first_signal.load()) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return deadline_passed() ? "the time limit" : "";
  }
}

void reset_stop() {
  first_signal = 0;
  deadline = kNoDeadline;
}

}  // namespace quipu
