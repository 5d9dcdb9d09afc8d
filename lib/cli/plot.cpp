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
                     std::ldexp(1.0, first), std::ldexp(1.0, last), tics);
}

std::string axis_script(const char* name, const PlotAxis& axis, double low, double high) {
  std::string script = fmt::format("set {}label {}\n", name, quoted(axis.label));
  if (axis.scale == AxisScale::log2) script += log2_range(name, low, high);
  if (axis.scale == AxisScale::log10) script += fmt::format("set logscale {0} 10\nset format {0} '%g'\n", name);
  return script;
}

const char* style_of(PlotStyle style) {
  if (style == PlotStyle::line) return "lines";
  return style == PlotStyle::points ? "points" : "linespoints";
}

/// How series number `index` is drawn from its data block.
std::string series_script(const PlotSeries& series, std::size_t index, std::size_t block, bool bars) {
  const char* colour = kColours[index % std::size(kColours)];
  const std::string title = series.name.empty() ? "notitle" : "title " + quoted(series.name);
  std::string script =
      fmt::format("$series{} using 1:2 with {} linecolor rgb '{}' linewidth 1.5 pointtype {} pointsize 0.5 {}", block,
                  style_of(series.style), colour, kShapes[index % std::size(kShapes)], title);
  if (bars)
    script += fmt::format(
        ", $series{} using 1:3:(0):($4-$3) with vectors nohead linecolor rgb '{}' linewidth 1 notitle", block, colour);
  return script;
}

/// Cairo's png is the smoother one, where gnuplot was built with it.
std::string terminal_script(const std::string& terminal, std::size_t plots) {
  const std::string options =
      fmt::format("noenhanced size {},500 font 'sans,12' background rgb 'white'", plots == 1 ? 800 : 640 * plots);
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

/// One plot, but for the terminal; its data blocks count from `block` on.
std::string panel_script(const Plot& plot, std::size_t& block) {
  std::string data, drawn;
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
    data += fmt::format("$series{} << END\n{}END\n", block, rows);
    drawn += (drawn.empty() ? "plot " : ", ") + series_script(series, i, block, bars);
    ++block;
    has_key = has_key || !series.name.empty();
  }
  if (drawn.empty()) throw InputError("plot of {}: no point can be shown; all are missing or not finite", plot.y.label);
  return "set encoding utf8\nset border 3 linecolor rgb '#444444'\nset tics nomirror out\n"
         "set grid ytics linecolor rgb '#dddddd' linetype 1\nset offsets graph "
         "0, graph 0, graph 0.05, "
         "graph 0.05\n" +
         std::string(has_key ? "set key top right noopaque\n" : "set key off\n") +
         axis_script("x", plot.x, x.low, x.high) + axis_script("y", plot.y, y.low, y.high) + data + drawn + "\n";
}

}  // namespace

std::string plot_script(const Plot& plot, const std::string& terminal) {
  return panels_script(std::span(&plot, 1), terminal);
}

std::string panels_script(std::span<const Plot> plots, const std::string& terminal) {
  std::size_t block = 0;
  std::string script = terminal_script(terminal, plots.size());
  if (plots.size() == 1) return script + panel_script(plots[0], block);
  script += fmt::format("set multiplot layout 1,{}\n", plots.size());
  for (const Plot& plot : plots) script += "reset\n" + panel_script(plot, block);
  return script + "unset multiplot\n";
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

void PlotFile::write_panels(std::span<const Plot> plots) {
  const std::string drawing = run_gnuplot(gnuplot_, panels_script(plots, terminal_));
  if (!is_whole(drawing, terminal_))
    throw InputError("gnuplot: gave {} bytes that are no whole {}; the package gnuplot-nox has one that draws it",
                     drawing.size(), terminal_);
  file_.write(drawing);
  file_.commit();
}

}  // namespace quipu
