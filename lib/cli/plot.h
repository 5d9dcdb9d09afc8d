#pragma once
#include <limits>
#include <string>
#include <vector>

#include "base/file.h"

namespace quipu {

enum class AxisScale { linear, log2, log10 };

/// label: with its unit, as in "time (s)". Labels and names are shown as they are, whatever they hold.
/// low, high: the ends of a linear axis; NaN: as the values have it.
struct PlotAxis {
  std::string label;
  AxisScale scale = AxisScale::linear;
  double low = std::numeric_limits<double>::quiet_NaN(), high = low;
};

/// error: half the length of the bar through the point; NaN: none. A point that is not finite, or not above 0 on an
/// axis with a logarithmic scale, is left out.
struct PlotPoint {
  double x = 0, y = 0;
  double error = std::numeric_limits<double>::quiet_NaN();
};

enum class PlotStyle { line, line_and_points, points };

struct PlotSeries {
  std::string name;  ///< in the key; empty: not there
  std::vector<PlotPoint> points;
  PlotStyle style = PlotStyle::line_and_points;
};

struct Plot {
  PlotAxis x, y;
  std::vector<PlotSeries> series;
  std::string title = {};  ///< above it; empty: none
};

/// Several plots in one drawing, row by row.
struct PlotSheet {
  std::vector<Plot> panels;
  int columns = 1;
};

/// What gnuplot is told to draw `plot` with, on its standard output. terminal: "svg" or "png". Throws InputError where
/// no point can be shown.
std::string plot_script(const Plot& plot, const std::string& terminal);
/// The same of several; a panel of which no point can be shown stays empty, where another one has some.
std::string plot_script(const PlotSheet& sheet, const std::string& terminal);

/// A plot in a file, drawn by gnuplot, which is looked for in PATH. All that can be known beforehand is checked by the
/// constructor, so that no work is lost.
class PlotFile {
 public:
  /// path: ends in .svg or .png, else UsageError. InputError where there is no gnuplot or the file cannot be written.
  explicit PlotFile(const std::string& path);

  /// Draws, and puts the file in its place; until then nothing is seen under the path. Call once. Throws InputError
  /// where there is nothing to draw, or gnuplot or the disk fails; then the path is as it was.
  void write(const Plot& plot) { write_drawing(plot_script(plot, terminal_)); }
  void write(const PlotSheet& sheet) { write_drawing(plot_script(sheet, terminal_)); }

 private:
  void write_drawing(const std::string& script);

  std::string terminal_, gnuplot_;
  OutputFile file_;
};

}  // namespace quipu
