#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/stopwatch.h"
#include "cli/console.h"
#include "cli/human.h"

namespace quipu {
namespace {

double rate_of(const ProgressState& state) {
  return state.elapsed_s > 0 ? (state.done - state.first) / state.elapsed_s : 0;
}

std::string amount(double value) { return grouped(static_cast<Index>(std::llround(value))); }

/// Everything but label, bar and percentage.
std::string details(const ProgressState& state) {
  std::string text = amount(state.done);
  if (state.total > 0) text += fmt::format("/{}", amount(state.total));
  text += " " + state.unit;
  const double rate = rate_of(state);
  if (rate > 0) {
    text += rate >= 1000 ? fmt::format("  {} {}/s", human_count(rate), state.unit)
                         : fmt::format("  {:.3g} {}/s", rate, state.unit);
    if (state.total > state.done) text += fmt::format("  {} left", human_duration((state.total - state.done) / rate));
  }
  if (!state.note.empty()) text += "  " + state.note;
  return text;
}

double fraction(const ProgressState& state) { return std::clamp(state.done / state.total, 0.0, 1.0); }

}  // namespace

std::string progress_bar(const ProgressState& state, std::size_t width) {
  constexpr std::size_t kCells = 20;
  std::string bar = state.label + "  ";
  if (state.total > 0) {
    const auto filled = static_cast<std::size_t>(fraction(state) * kCells);
    std::string cells(filled, '=');
    if (filled < kCells) cells += '>';
    bar += fmt::format("[{:<{}}] {:3.0f} %  ", cells, kCells, std::floor(fraction(state) * 100));
  }
  bar += details(state);
  return bar.substr(0, width > 1 ? width - 1 : 0);
}

std::string progress_line(const ProgressState& state) {
  std::string line = state.label + ": ";
  if (state.total > 0) line += fmt::format("{:.0f} %  ", std::floor(fraction(state) * 100));
  return line + details(state);
}

ProgressView console_progress() {
  ProgressView view;
  view.quiet = console_is_quiet();
  view.terminal = console_is_terminal();
  view.width = console_width();
  view.now_s = [watch = Stopwatch()] { return watch.seconds(); };
  view.set_bar = set_console_bar;
  view.write_line = console_line;
  return view;
}

Progress::Progress(const std::string& label, const std::string& unit, double total, double first, ProgressView view)
    : view_(std::move(view)) {
  state_.label = label;
  state_.unit = unit;
  state_.total = total;
  state_.first = state_.done = first;
  start_s_ = view_.now_s();
  next_s_ = start_s_ + (view_.terminal ? view_.bar_every_s : view_.line_every_s);
}

void Progress::update(double done, const std::string& note) {
  if (view_.quiet || finished_) return;
  state_.done = done;
  const double now = view_.now_s();
  if (now < next_s_) return;
  state_.note = note;
  state_.elapsed_s = now - start_s_;
  if (view_.terminal) {
    view_.set_bar(progress_bar(state_, view_.width));
    next_s_ = now + view_.bar_every_s;
  } else {
    view_.write_line(progress_line(state_));
    next_s_ = now + view_.line_every_s;
  }
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  if (view_.terminal && !view_.quiet) view_.set_bar("");
}

}  // namespace quipu
