#pragma once
#include <functional>
#include <string>

namespace quipu {

/// How far a piece of work is.
struct ProgressState {
  std::string label;  // "train"
  std::string unit;   // "steps"
  double total = 0;   // 0: unknown
  double first = 0;   // where this run began: not 0 for one that goes on with an earlier run
  double done = 0;
  double elapsed_s = 0;
  std::string note;  // such as "loss 1.93"
};

/// "train  [=====>    ]  45 %  900/2,000 steps  12.3 steps/s  1 min 29 s left  loss 1.93", cut to `width` columns.
std::string progress_bar(const ProgressState& state, std::size_t width);
/// The same in words, without a bar, for a log.
std::string progress_line(const ProgressState& state);

/// Where progress shows, and how often.
struct ProgressView {
  bool quiet = false;
  bool terminal = false;
  std::size_t width = 80;
  double bar_every_s = 0.1;
  double line_every_s = 30;
  std::function<double()> now_s;                    // a clock that never goes back
  std::function<void(const std::string&)> set_bar;  // "" takes it away
  std::function<void(const std::string&)> write_line;
};

/// On the console: a bar where standard error is a terminal, a line now and then otherwise, nothing with --quiet.
ProgressView console_progress();

/// Shows progress while it lives. `update` may be called as often as one likes: it shows only what is due.
class Progress {
 public:
  Progress(const std::string& label, const std::string& unit, double total, double first = 0,
           ProgressView view = console_progress());
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(double done, const std::string& note = "");
  /// Takes the bar away; what came out of the work is the caller's to say.
  void finish();

 private:
  ProgressView view_;
  ProgressState state_;
  double start_s_;
  double next_s_;
  bool finished_ = false;
};

}  // namespace quipu
