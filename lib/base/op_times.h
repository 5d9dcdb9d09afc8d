#pragma once
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quipu {

/// Where the time of one thread goes, by kind of operation. It listens to the scopes (OpScope) that this thread opens
/// while it lives; an inner scope's time is its own and not its outer one's, so that the lines add up to the whole.
class OpTimes {
 public:
  /// Time that is in no scope.
  static constexpr const char* kOther = "other";

  struct Line {
    std::string op;
    bool backward = false;
    long calls = 0;  ///< scopes opened; none of kOther
    double seconds = 0;
  };

  /// One at a time in a thread, which ends it.
  OpTimes();
  ~OpTimes();
  OpTimes(const OpTimes&) = delete;
  OpTimes& operator=(const OpTimes&) = delete;

  /// So far, the longest first.
  std::vector<Line> lines();
  /// Forgets all times so far; in no scope.
  void restart();

 private:
  friend class OpScope;
  using Clock = std::chrono::steady_clock;
  struct Sum {
    long calls = 0;
    Clock::duration time{};
  };
  using Sums = std::map<std::pair<std::string_view, bool>, Sum>;

  void enter(const char* op, bool backward);
  void leave();
  void account();

  Sums sums_;
  std::vector<Sums::value_type*> open_;
  Clock::time_point mark_;
};

namespace detail {
inline constinit thread_local OpTimes* op_listener = nullptr;
}

/// One call of an operation, from here to the end of the block. Where nobody listens it costs a load and a branch. A
/// scope inside another of the same name is the same call. op: a literal, as in "norm".
class OpScope {
 public:
  explicit OpScope(const char* op, bool backward = false) : times_(detail::op_listener) {
    if (times_ != nullptr) times_->enter(op, backward);
  }
  ~OpScope() {
    if (times_ != nullptr) times_->leave();
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  /// The innermost operation that is open in this thread; kOther without one, null where nobody listens.
  static const char* current() {
    const OpTimes* const times = detail::op_listener;
    return times == nullptr ? nullptr : times->open_.back()->first.first.data();
  }

 private:
  OpTimes* times_;
};

}  // namespace quipu
