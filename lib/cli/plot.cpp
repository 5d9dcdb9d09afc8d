#include "cli/plot.h"

#include <algorithm>
#include <cmath>

#include "cli/gnuplot.h"
#include "text/escape.h"

namespace quipu {
namespace {

/// Colours that differ for the colour-blind too, the darkest first.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444"};
constexpr int kShapes[] = {7, 5, 9, 13, 11};

/// A text between single quotes: nothing in it is interpreted but a quote, which is doubled. Control characters, which
/// could end the line, are escaped.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : escape_text(text)) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

bool shows(const PlotAxis& axis, double value) {
  return std::isfinite(value) && (axis.scale == AxisScale::linear || value > 0);
}

/// The ends of a point's bar; one that a logarithmic axis cannot show is cut off at a tenth of the value.
std::string bar_columns(const PlotAxis& axis, const PlotPoint& point) {
  const double low = point.y - point.error;
  return fmt::format("{:.17g} {:.17g}", shows(axis, low) ? low : point.y / 10, point.y + point.error);
}

std::string power_of_two(int exponent) {
  constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti"};
  if (exponent < 0 || exponent >= 50) return fmt::format("2^{}", exponent);
  return fmt::format("{}{}", 1 << (exponent % 10), kUnits[exponent / 10]);
}

/// Whole powers of two around the values, each (or each second, third, ..) with its tic.
std::string log2_range(const char* axis, double low, double high) {
  const int first = static_cast<int>(std::floor(std::log2(low)));
  const int last = std::max(first + 1, static_cast<int>(std::ceil(std::log2(high))));
  const int step = (last - first + 13) / 14;
  std::string tics;
  for (int exponent = first; exponent <= last; exponent += step)
    tics += fmt::format("{}{} {:.17g}", tics.empty() ? "" : ", ", quoted(power_of_two(exponent)),
                        std::ldexp(1.0, exponent));
  return fmt::format("set logscale {0} 2\nset {0}range [{1:.17g}:{2:.17g}]\nset {0}tics ({3})\n", axis,
                     std::ldexp(1.0, first), 1.001 * std::ldexp(1.0, last), tics);  // past the last tic, else not shown
}

std::string axis_script(const char* name, const PlotAxis& axis, double low, double high) {
  std::string script = fmt::format("set {}label {}\n", name, quoted(axis.label));
  if (std::isfinite(axis.low) && std::isfinite(axis.high))
    script += fmt::format("set {}range [{:.17g}:{:.17g}]\n", name, axis.low, axis.high);
  if (axis.scale == AxisScale::log2) script += log2_range(name, low, high);
  if (axis.scale == AxisScale::log10) script += fmt::format("set logscale {0} 10\nset format {0} '%g'\n", name);
  return script;
}

const char* style_of(PlotStyle style) {
  if (style == PlotStyle::line) return "lines";
  return style == PlotStyle::points ? "points" : "linespoints";
}

/// How series number `index` is drawn from its data block.
std::string series_script(const PlotSeries& series, const std::string& block, std::size_t index, bool bars) {
  const char* colour = kColours[index % std::size(kColours)];
  const std::string title = series.name.empty() ? "notitle" : "title " + quoted(series.name);
  std::string script =
      fmt::format("{} using 1:2 with {} linecolor rgb '{}' linewidth 1.5 pointtype {} pointsize 0.5 {}", block,
                  style_of(series.style), colour, kShapes[index % std::size(kShapes)], title);
  if (bars)
    script += fmt::format(", {} using 1:3:(0):($4-$3) with vectors nohead linecolor rgb '{}' linewidth 1 notitle",
                          block, colour);
  return script;
}

/// Cairo's png is the smoother one, where gnuplot was built with it.
std::string terminal_script(const std::string& terminal, std::size_t columns, std::size_t rows) {
  const std::string options =
      fmt::format("noenhanced size {},{} font 'sans,12' background rgb 'white'", 800 * columns, 500 * rows);
  const std::string plain = fmt::format("set terminal {} {}", terminal, options);
  if (terminal != "png") return plain + "\n";
  return fmt::format("if (strstrt(GPVAL_TERMINALS, 'pngcairo')) {{ set terminal pngcairo {} }} else {{ {} }}\n",
                     options, plain);
}

/// The least and the greatest number that an axis shows.
struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// One plot as gnuplot is told it: `data` may stand anywhere before `drawn`, which is empty where there is nothing.
struct PanelScript {
  std::string data, drawn;
};

/// blocks: what the names of its data blocks begin with.
PanelScript panel_script(const Plot& plot, const std::string& blocks) {
  PanelScript script;
  std::string drawn;
  Extent x, y;
  bool has_key = false;
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const PlotSeries& series = plot.series[i];
    bool empty = true, bars = false;
    std::string rows;
    for (const PlotPoint& point : series.points) {
      if (!shows(plot.x, point.x) || !shows(plot.y, point.y)) continue;
      const bool bar = std::isfinite(point.error);
      rows += fmt::format("{:.17g} {:.17g} {}\n", point.x, point.y, bar ? bar_columns(plot.y, point) : "NaN NaN");
      x.take(point.x), y.take(point.y);
      empty = false, bars = bars || bar;
    }
    if (empty) continue;
    const std::string block = fmt::format("${}{}", blocks, i);
    script.data += fmt::format("{} << END\n{}END\n", block, rows);
    drawn += (drawn.empty() ? "plot " : ", ") + series_script(series, block, i, bars);
    has_key = has_key || !series.name.empty();
  }
  if (drawn.empty()) return script;
  script.drawn = (plot.title.empty() ? "unset title\n" : "set title " + quoted(plot.title) + "\n") +
                 (has_key ? "set key below noopaque\n" : "set key off\n") + axis_script("x", plot.x, x.low, x.high) +
                 axis_script("y", plot.y, y.low, y.high) + drawn + "\n";
  return script;
}

constexpr const char* kFrame =
    "set encoding utf8\nset border 3 linecolor rgb '#444444'\nset tics nomirror out\n"
    "set grid ytics linecolor rgb '#dddddd' linetype 1\nset offsets graph 0, graph 0, graph 0.05, graph 0.05\n";

/// What one panel leaves for the next.
constexpr const char* kNextPanel =
    "unset logscale\nset xtics autofreq\nset ytics autofreq\nset format '%g'\nset autoscale\n";

[[noreturn]] void throw_nothing(const Plot& plot) {
  throw InputError("plot of {}: no point can be shown; all are missing or not finite", plot.y.label);
}

}  // namespace

std::string plot_script(const Plot& plot, const std::string& terminal) {
  const PanelScript panel = panel_script(plot, "series");
  if (panel.drawn.empty()) throw_nothing(plot);
  return terminal_script(terminal, 1, 1) + kFrame + panel.data + panel.drawn;
}

std::string plot_script(const PlotSheet& sheet, const std::string& terminal) {
  if (sheet.panels.empty()) throw InternalError("a sheet without plots");
  std::string data, drawn;
  bool empty = true;
  for (std::size_t i = 0; i < sheet.panels.size(); ++i) {
    const PanelScript panel = panel_script(sheet.panels[i], fmt::format("panel{}_", i));
    data += panel.data;
    drawn += kNextPanel + (panel.drawn.empty() ? "set multiplot next\n" : panel.drawn);
    empty = empty && panel.drawn.empty();
  }
  if (empty) throw_nothing(sheet.panels.front());
  const auto columns = static_cast<std::size_t>(std::max(1, sheet.columns));
  const std::size_t rows = (sheet.panels.size() + columns - 1) / columns;
  return terminal_script(terminal, columns, rows) + kFrame + data +
         fmt::format("set multiplot layout {},{}\n", rows, columns) + drawn + "unset multiplot\n";
}

namespace {

std::string terminal_of(const std::string& path) {
  for (const char* terminal : {"svg", "png"})
    if (path.ends_with(fmt::format(".{}", terminal))) return terminal;
  throw UsageError("{}: a plot is drawn as .svg or .png; give a file name that ends so", path);
}

/// Whether the drawing is there to its end.
bool is_whole(const std::string& drawing, const std::string& terminal) {
  return drawing.find(terminal == "svg" ? "</svg>" : "IEND",
                      drawing.size() - std::min<std::size_t>(drawing.size(), 32)) != std::string::npos;
}

}  // namespace

PlotFile::PlotFile(const std::string& path) : terminal_(terminal_of(path)), gnuplot_(find_gnuplot()), file_(path) {}

void PlotFile::write_drawing(const std::string& script) {
  const std::string drawing = run_gnuplot(gnuplot_, script);
  if (!is_whole(drawing, terminal_))
    throw InputError("gnuplot: gave {} bytes that are no whole {}; the package gnuplot-nox has one that draws it",
                     drawing.size(), terminal_);
  file_.write(drawing);
  file_.commit();
}

}  // namespace quipu
