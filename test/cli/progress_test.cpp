#include "cli/progress.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace quipu;

namespace {

struct Screen {
  double now = 100;
  std::vector<std::string> bars;
  std::vector<std::string> lines;

  ProgressView view(bool terminal, bool quiet = false) {
    ProgressView view;
    view.terminal = terminal;
    view.quiet = quiet;
    view.width = 120;
    view.now_s = [this] { return now; };
    view.set_bar = [this](const std::string& bar) { bars.push_back(bar); };
    view.write_line = [this](const std::string& line) { lines.push_back(line); };
    return view;
  }
};

}  // namespace

TEST_CASE("progress: a bar on a terminal, redrawn at most ten times a second, gone at the end") {
  Screen screen;
  {
    Progress progress("train", "steps", 2000, 0, screen.view(true));
    for (int step = 1; step <= 900; ++step) {
      screen.now += 0.01;
      progress.update(step, "loss 1.93");
    }
  }
  CHECK(screen.lines.empty());
  REQUIRE(screen.bars.size() > 50);
  CHECK(screen.bars.size() <= 92);
  CHECK(screen.bars.back() == "");
  Screen late;
  {
    Progress progress("train", "steps", 2000, 0, late.view(true));
    late.now += 90;
    progress.update(900, "loss 1.93");
  }
  CHECK(late.bars.at(0) ==
        "train  [=========>          ]  45 %  900/2,000 steps  10 steps/s  1 min 50 s left  loss 1.93");
}

TEST_CASE("progress: a line now and then elsewhere, nothing when quiet") {
  Screen screen;
  Screen silent;
  {
    Progress progress("read", "bytes", 0, 0, screen.view(false));
    Progress quiet("read", "bytes", 0, 0, silent.view(true, true));
    for (int second = 1; second <= 65; ++second) {
      screen.now += 1;
      silent.now += 1;
      progress.update(second * 1e6);
      quiet.update(second);
    }
  }
  CHECK(screen.bars.empty());
  CHECK(screen.lines ==
        std::vector<std::string>{"read: 30,000,000 bytes  1 M bytes/s", "read: 60,000,000 bytes  1 M bytes/s"});
  CHECK(silent.bars.empty());
  CHECK(silent.lines.empty());
}

TEST_CASE("progress: a run that goes on counts its own speed, and a narrow terminal cuts the bar") {
  ProgressState state{
      .label = "train", .unit = "steps", .total = 200, .first = 100, .done = 150, .elapsed_s = 10, .note = ""};
  CHECK(progress_line(state) == "train: 75 %  150/200 steps  5 steps/s  10.0 s left");
  CHECK(progress_bar(state, 20).size() == 19);
  state.done = 500;
  CHECK(progress_bar(state, 200) == "train  [====================] 100 %  500/200 steps  40 steps/s");
}
