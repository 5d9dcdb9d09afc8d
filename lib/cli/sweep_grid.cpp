#include "cli/sweep_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"

namespace quipu {
namespace {

/// Letters that are good in the name of a folder; others become `_`, and the comma of a pattern `+`.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                      c == '_' || c == '-' || c == '+';
    result += good ? c : c == ',' ? '+' : '_';
  }
  return result;
}

/// All choices of one value each of those options that `mixer` has.
std::vector<std::vector<std::string>> settings_of(
    const SweepAxes& axes, const std::string& mixer,
    const std::function<bool(const std::string&, const std::string&)>& takes, std::set<std::string>& taken) {
  std::vector<std::vector<std::string>> all{{}};
  for (const auto& [key, values] : axes.options) {
    if (!takes(mixer, key)) continue;
    taken.insert(key);
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& setting : all)
      for (const std::string& value : values) {
        longer.push_back(setting);
        longer.back().push_back(key + "=" + value);
      }
    all = std::move(longer);
  }
  return all;
}

void require_values(const char* option, std::size_t count) {
  if (count == 0) throw UsageError("{}: is an empty list; give at least one value", option);
}

void add_cells(const SweepAxes& axes, std::size_t point, std::vector<SweepCell>& cells) {
  for (const double rate : axes.rates) cells.push_back({point, rate, axes.seeds.front()});
  const std::optional<double> later = axes.rates.size() == 1 ? std::optional(axes.rates.front()) : std::nullopt;
  for (std::size_t i = 1; i < axes.seeds.size(); ++i) cells.push_back({point, later, axes.seeds[i]});
}

}  // namespace

std::string SweepPoint::model_name() const {
  std::string name = mixer;
  for (const std::string& setting : set) {
    std::string word = setting;
    word.erase(word.find('='), 1);
    name += "_" + word;
  }
  return plain(name);
}

std::string SweepGrid::name(const SweepCell& cell, std::optional<double> rate) const {
  const SweepPoint& p = points[cell.point];
  return fmt::format("{}-{}-dim{}-layers{}-lr{}-seed{}", plain(tasks[p.task]), p.model_name(), p.dim, p.layers,
                     rate ? fmt::format("{}", *rate) : "best", cell.seed);
}

SweepGrid make_grid(const SweepAxes& axes,
                    const std::function<bool(const std::string& mixer, const std::string& key)>& takes) {
  require_values("--task", axes.tasks.size());
  require_values("--mixer", axes.mixers.size());
  require_values("--layers", axes.layers.size());
  require_values("--dim", axes.dims.size());
  require_values("--lr", axes.rates.size());
  require_values("--seeds", axes.seeds.size());
  SweepGrid grid{axes.tasks, {}, {}};
  std::set<std::string> taken, names;
  for (std::size_t task = 0; task < axes.tasks.size(); ++task)
    for (const std::string& mixer : axes.mixers)
      for (const std::vector<std::string>& set : settings_of(axes, mixer, takes, taken))
        for (const Index layers : axes.layers)
          for (const Index dim : axes.dims) {
            grid.points.push_back({task, mixer, set, layers, dim});
            add_cells(axes, grid.points.size() - 1, grid.cells);
          }
  for (const auto& [key, values] : axes.options)
    if (!taken.contains(key))
      throw UsageError("--set {}: none of the mixers has this option; train --describe-mixer NAME lists them", key);
  for (const SweepCell& cell : grid.cells)
    if (const std::string name = grid.name(cell, cell.rate.value_or(axes.rates.front())); !names.insert(name).second)
      throw UsageError("{}: two cells of the sweep have this name; leave out what stands twice", name);
  return grid;
}

std::vector<std::size_t> share_of(const SweepGrid& grid, const std::vector<double>& cost, Index index, Index count) {
  if (count < 1 || index < 1 || index > count)
    throw UsageError("--cells {}/{}: is no share; the first of {} is 1/{}", index, count, count, count);
  std::vector<std::size_t> order(grid.points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return cost[a] > cost[b]; });
  std::vector<bool> mine(grid.points.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    const auto round = static_cast<Index>(place) / count, seat = static_cast<Index>(place) % count;
    const Index share = round % 2 == 0 ? seat : count - 1 - seat;  // there and back again, as cards are dealt fairly
    mine[order[place]] = share == index - 1;
  }
  std::vector<std::size_t> cells;
  for (std::size_t i = 0; i < grid.cells.size(); ++i)
    if (mine[grid.cells[i].point]) cells.push_back(i);
  return cells;
}

std::vector<std::string> parse_list(const std::string& option, const std::string& text) {
  std::vector<std::string> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    values.push_back(text.substr(begin, end - begin));
    if (values.back().empty()) throw UsageError("{} {}: has an empty value; write them as in a,b,c", option, text);
    begin = end + 1;
  }
  return values;
}

std::size_t rows_together(const std::vector<std::pair<std::string, std::size_t>>& lengths) {
  const std::pair<std::string, std::size_t>* longest = nullptr;
  for (const auto& list : lengths) {
    if (list.second <= 1) continue;
    if (longest != nullptr && longest->second != list.second)
      throw UsageError("--{} has {} values and --{} has {}: lists of a task go together, one by one; make them as long",
                       longest->first, longest->second, list.first, list.second);
    longest = &list;
  }
  return longest == nullptr ? 1 : longest->second;
}

}  // namespace quipu
