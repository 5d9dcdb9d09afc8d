#include "cli/plot.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/temporary_folder.h"
#include "cli/gnuplot.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;
using quipu_test::write_whole;

namespace {

const double kNone = std::numeric_limits<double>::quiet_NaN();

Plot sample() {
  return {.x = {"context (tokens)", AxisScale::log2},
          .y = {"loss (nats per token)"},
          .series = {{.name = "one", .points = {{1, 5}, {64, 3.5, 0.1}, {100000, kNone}, {70000, 3, 0.2}}},
                     {.name = "two", .points = {{1, 6}, {64, 4}}, .style = PlotStyle::line}}};
}

/// PATH, put back at the end.
class Path {
 public:
  explicit Path(const std::string& path) : old_(std::getenv("PATH")) { ::setenv("PATH", path.c_str(), 1); }
  ~Path() { ::setenv("PATH", old_.c_str(), 1); }

 private:
  std::string old_;
};

/// A folder with a program called gnuplot.
std::string fake(const TemporaryFolder& folder, const std::string& script) {
  write_whole(folder / "gnuplot", "#!/bin/sh\n" + script + "\n");
  ::chmod((folder / "gnuplot").c_str(), 0755);
  return folder.path();
}

std::string message_of(const std::string& path, const Plot& plot) {
  try {
    PlotFile(path).write(plot);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has_gnuplot() {
  try {
    find_gnuplot();
    return true;
  } catch (const InputError&) {
    MESSAGE("skipped: no gnuplot here");
    return false;
  }
}

}  // namespace

TEST_CASE("plot: the script has every point that can be shown, and none that cannot") {
  const std::string script = plot_script(sample(), "svg");
  CHECK(script.find("set terminal svg noenhanced") == 0);
  CHECK(script.find("\n64 3.5 3.3999999999999999 3.6") != std::string::npos);
  CHECK(script.find("\n1 5 NaN NaN\n") != std::string::npos);
  CHECK(script.find("\n100000 ") == std::string::npos);
  CHECK(script.find("set xrange [1:131203.07") != std::string::npos);
  CHECK(script.find("'64Ki' 65536") != std::string::npos);
  CHECK(script.find("$series0 using 1:3:(0):($4-$3) with vectors") != std::string::npos);
  CHECK(script.find("$series1 using 1:3") == std::string::npos);
  CHECK(script.find("title 'one'") != std::string::npos);
  Plot nothing = sample();
  nothing.y.scale = AxisScale::log10;
  for (PlotSeries& series : nothing.series)
    for (PlotPoint& point : series.points) point.y = -1;
  CHECK_THROWS_WITH_AS(plot_script(nothing, "svg"), doctest::Contains("no point can be shown"), InputError);
  CHECK_THROWS_AS(plot_script(Plot{}, "svg"), InputError);
}

TEST_CASE("plot: a label cannot end its quotes or its line") {
  Plot plot = sample();
  plot.x.label = "it's\n!touch owned\n\r `id` @x";
  const std::string script = plot_script(plot, "png");
  CHECK(script.find("set xlabel 'it''s\\n!touch owned\\n\\r `id` @x'\n") != std::string::npos);
}

TEST_CASE("plot: other endings are a usage error, before all else") {
  const Path path("/nowhere");
  for (const char* name : {"a.pdf", "svg", "-", "", "a.svg.gz"}) CHECK_THROWS_AS(PlotFile{name}, UsageError);
}

TEST_CASE("plot: no gnuplot, or one that fails, is a line and leaves no file") {
  const TemporaryFolder folder, programs;
  const std::string file = folder / "a.svg";
  write_whole(file, "old");
  {
    const Path path(":relative:" + folder.path());
    CHECK_THROWS_WITH_AS(PlotFile{file}, doctest::Contains("install the package gnuplot-nox"), InputError);
  }
  const auto failing = [&](const std::string& script) {
    const Path path(fake(programs, script) + ":/usr/bin:/bin");
    return message_of(file, sample());
  };
  CHECK(
      failing("echo 'set x'; printf '      ^\\n   line 0: no such terminal\\n\\n' >&2; exit 3") ==
      "gnuplot: ended with status 3: line 0: no such terminal; the package gnuplot-nox has one that draws svg and png");
  CHECK(failing("kill -9 $$").find("was ended by signal 9") != std::string::npos);
  CHECK(failing("cat >/dev/null").find("gave 0 bytes that are no whole svg") != std::string::npos);
  CHECK(failing("echo '<svg>'").find("no whole svg") != std::string::npos);
  CHECK(failing("yes 'long </svg>' | head -n 99999") == "");
  CHECK(read_whole(file).starts_with("long </svg>"));
  CHECK(folder.entries() == 1);
  CHECK_THROWS_AS(PlotFile{folder / "none/a.svg"}, InputError);
}

TEST_CASE("plot: gnuplot draws svg and png, labels as they are") {
  if (!has_gnuplot()) return;
  const TemporaryFolder folder;
  Plot plot = sample();
  plot.y.label = "a <b> & 'c' {x}_2^{y} \\n `id` \xce\xb1 \xff";
  plot.series[0].name = "$(id)";
  REQUIRE(message_of(folder / "a.svg", plot) == "");
  REQUIRE(message_of(folder / "a.png", plot) == "");
  const std::string svg = read_whole(folder / "a.svg");
  CHECK(svg.find("<svg") != std::string::npos);
  CHECK(svg.find("a &lt;b") != std::string::npos);
  CHECK(svg.find("'c' {x}_2^{y} \\\\n `id` \xce\xb1 \\xff<") != std::string::npos);
  CHECK(svg.find("$(id)") != std::string::npos);
  CHECK(svg.find("64Ki") != std::string::npos);
  CHECK(read_whole(folder / "a.png").substr(1, 3) == "PNG");
  CHECK(folder.entries() == 2);
  for (PlotAxis* axis : {&plot.x, &plot.y}) axis->scale = AxisScale::log10;
  CHECK(message_of(folder / "a.svg", plot) == "");
  plot.series = {{.name = "", .points = {{1, 1}}, .style = PlotStyle::points}};
  CHECK(message_of(folder / "a.svg", plot) == "");
}

TEST_CASE("plot: a sheet has its panels row by row, with scales of their own") {
  Plot left = sample(), empty;
  left.title = "it's left";
  const PlotSheet sheet{
      .panels = {left, empty, {.x = {"x"}, .y = {"y"}, .series = {{.name = "only", .points = {{1, 2}}}}}},
      .columns = 2};
  const std::string script = plot_script(sheet, "svg");
  CHECK(script.find("size 1600,1000") != std::string::npos);
  CHECK(script.find("set multiplot layout 2,2\n") != std::string::npos);
  CHECK(script.find("set title 'it''s left'") != std::string::npos);
  CHECK(script.find("$panel0_1 << END\n1 6 NaN NaN") != std::string::npos);
  const std::size_t last = script.find("$panel2_0 using");
  REQUIRE(last != std::string::npos);
  CHECK(script.rfind("unset logscale", last) > script.find("set multiplot next"));
  CHECK_THROWS_WITH_AS(plot_script(PlotSheet{.panels = {empty, empty}}, "svg"), doctest::Contains("no point"),
                       InputError);
  if (!has_gnuplot()) return;
  const TemporaryFolder folder;
  PlotFile(folder / "a.svg").write(sheet);
  const std::string svg = read_whole(folder / "a.svg");
  CHECK(svg.find("it's left") != std::string::npos);
  CHECK(svg.find("only") != std::string::npos);
}

TEST_CASE("plot: a full disk is an error") {
  if (!has_gnuplot()) return;
  const TemporaryFolder folder;
  REQUIRE(::symlink("/dev/full", (folder / "full.svg").c_str()) == 0);
  CHECK(message_of(folder / "full.svg", sample()).find("cannot write: No space left") != std::string::npos);
}
