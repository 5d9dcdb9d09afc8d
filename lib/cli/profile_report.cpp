#include "cli/profile_report.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace quipu {
namespace {

std::string share_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Half the distance of the quartiles, over the median.
std::string spread_text(const ProfileRow& row) {
  if (row.repeats < 2) return "once";
  const double half = (row.seconds_per_token_high - row.seconds_per_token_low) / 2;
  return fmt::format("{:.1f} %", 100 * half / row.seconds_per_token);
}

/// Three figures, in s, ms, us or ns.
std::string time_text(double seconds) {
  constexpr std::pair<double, const char*> kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  for (const auto& [unit, name] : kUnits)
    if (const double value = seconds / unit; value >= 1 || unit == 1e-9)
      return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, name);
  return "";
}

std::string span_text(const Verdict& v) { return fmt::format("from {} to {}", grouped(v.from), grouped(v.to)); }

/// Two digits behind the point below ten, none above.
std::string ratio_text(double ratio) {
  return ratio < 9.995 ? fmt::format("x{:.2f}", ratio) : fmt::format("x{:.0f}", ratio);
}

std::string rows_text(const Profile& profile) {
  Table table({"mixer", "length", "threads", "a token", "spread", "tokens/s", "state", "memory", "FLOPs", "bytes",
               "of ceiling", "bound by"});
  std::string notes;
  for (const ProfileRow& row : profile.rows) {
    const std::string length = grouped(row.length), threads = fmt::to_string(row.threads);
    if (!row.measured()) {
      table.row({row.mixer, length, threads, "-", "-", "-", "-", "-", "-", "-", "-", "-"});
      notes += fmt::format("{} at {}: not measured: {}\n", curve_name(profile, row), length, row.note);
      continue;
    }
    table.row({row.mixer, length, threads, time_text(row.seconds_per_token), spread_text(row),
               human_count(row.tokens_per_s()), human_bytes(static_cast<double>(row.state_bytes)),
               human_bytes(static_cast<double>(row.resident_bytes)), human_count(row.flops_per_token),
               human_bytes(row.bytes_per_token), share_text(row.ceiling_share),
               row.memory_bound ? "memory" : "products"});
  }
  if (!notes.empty()) notes.insert(0, 1, '\n');
  return table.text() + notes;
}

std::string ceilings_text(const Profile& profile) {
  std::string text;
  for (const ProfileCeiling& c : profile.ceilings)
    text += fmt::format("ceiling with {} thread{}: {}FLOP/s in products, {}/s from memory ({}; {})\n", c.threads,
                        c.threads == 1 ? "" : "s", human_count(c.flops_per_s), human_bytes(c.bytes_per_s),
                        profile.products, profile.simd_target);
  return text;
}

/// Forward and backward seconds and calls of one kind of operation.
struct OpTotal {
  double forward = 0, backward = 0, calls = 0;
  double seconds() const { return forward + backward; }
};

std::vector<std::pair<std::string, OpTotal>> op_totals(const ProfileRow& row) {
  std::vector<std::pair<std::string, OpTotal>> totals;
  for (const ProfileOp& op : row.ops) {
    auto at = std::ranges::find(totals, op.op, &std::pair<std::string, OpTotal>::first);
    if (at == totals.end()) at = totals.insert(at, {op.op, {}});
    (op.backward ? at->second.backward : at->second.forward) += op.seconds;
    if (!op.backward) at->second.calls += op.calls;
  }
  std::ranges::stable_sort(totals,
                           [](const auto& a, const auto& b) { return a.second.seconds() > b.second.seconds(); });
  return totals;
}

std::string ops_text(const Profile& profile, const ProfileRow& row) {
  const auto totals = op_totals(row);
  double all = 0;
  for (const auto& [op, total] : totals) all += total.seconds();
  Table table({"operation", "%", "ms", "forward, ms", "backward, ms", "calls"});
  const auto ms = [](double seconds) { return fmt::format("{:.3f}", 1e3 * seconds); };
  OpTotal sum;
  for (const auto& [op, total] : totals) {
    table.row({op, fmt::format("{:.1f}", 100 * total.seconds() / all), ms(total.seconds()), ms(total.forward),
               ms(total.backward), fmt::format("{:.0f}", total.calls)});
    sum.forward += total.forward, sum.backward += total.backward, sum.calls += total.calls;
  }
  table.row({"all", "100.0", ms(all), ms(sum.forward), ms(sum.backward), fmt::format("{:.0f}", sum.calls)});
  return fmt::format("\n{}, {} at {}, batch {}:\n{}", curve_name(profile, row), row.mode, grouped(row.length),
                     row.batch, table.text());
}

Json ops_json(const ProfileRow& row) {
  double all = 0;
  for (const ProfileOp& op : row.ops) all += op.seconds;
  Json list = Json::array();
  for (const ProfileOp& op : row.ops)
    list.push_back({{"op", op.op},
                    {"pass", op.backward ? "backward" : "forward"},
                    {"calls", op.calls},
                    {"seconds", op.seconds},
                    {"share", op.seconds / all}});
  return list;
}

Json row_json(const ProfileRow& row) {
  Json json{{"mixer", row.mixer}, {"mode", row.mode},       {"length", row.length},
            {"batch", row.batch}, {"threads", row.threads}, {"note", row.measured() ? Json() : Json(row.note)}};
  if (!row.measured()) return json;
  json["seconds_per_token"] = row.seconds_per_token;
  json["seconds_per_token_low"] = row.seconds_per_token_low;
  json["seconds_per_token_high"] = row.seconds_per_token_high;
  json["repeats"] = row.repeats;
  json["tokens_per_s"] = row.tokens_per_s();
  json["state_bytes"] = row.state_bytes;
  json["resident_bytes"] = row.resident_bytes;
  json["flops_per_token"] = row.flops_per_token;
  json["bytes_per_token"] = row.bytes_per_token;
  json["ceiling_share"] = row.ceiling_share;
  json["ceiling"] = row.memory_bound ? "memory" : "products";
  if (!row.ops.empty()) json["ops"] = ops_json(row);
  return json;
}

const char* trend_name(Trend trend) {
  constexpr const char* kNames[] = {"one length", "flat", "grows", "falls"};
  return kNames[static_cast<std::size_t>(trend)];
}

Json verdict_json(const ProfileRow& row, const Verdict& v) {
  return {{"mixer", row.mixer},
          {"threads", row.threads},
          {"state_constant", v.from == 0 || v.from == v.to ? Json() : Json(v.constant_state)},
          {"time", v.from == 0 ? Json() : Json(trend_name(v.time))},
          {"time_ratio", v.time_ratio},
          {"from", v.from},
          {"to", v.to},
          {"state_verdict", state_verdict(v)},
          {"time_verdict", time_verdict(v)}};
}

}  // namespace

std::vector<std::span<const ProfileRow>> curves_of(const Profile& profile) {
  std::vector<std::span<const ProfileRow>> curves;
  const std::span rows(profile.rows);
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin + 1;
    while (end < rows.size() && rows[end].mixer == rows[begin].mixer && rows[end].threads == rows[begin].threads) ++end;
    curves.push_back(rows.subspan(begin, end - begin));
    begin = end;
  }
  return curves;
}

std::string curve_name(const Profile& profile, const ProfileRow& row) {
  if (std::ranges::all_of(profile.rows, [&](const ProfileRow& r) { return r.threads == row.threads; }))
    return row.mixer;
  return fmt::format("{}, {} thread{}", row.mixer, row.threads, row.threads == 1 ? "" : "s");
}

std::string state_verdict(const Verdict& v) {
  if (v.from == 0) return "state: not measured";
  if (v.from == v.to) return fmt::format("state: {} bytes at {}", grouped(v.state_bytes_from), grouped(v.from));
  if (v.constant_state) return fmt::format("state constant: yes ({} bytes)", grouped(v.state_bytes_from));
  return fmt::format("state constant: no ({} bytes at {}, {} at {})", grouped(v.state_bytes_from), grouped(v.from),
                     grouped(v.state_bytes_to), grouped(v.to));
}

std::string time_verdict(const Verdict& v) {
  if (v.from == 0) return "time per token: not measured";
  switch (v.time) {
    case Trend::one_length:
      return fmt::format("time per token: measured at {} alone", grouped(v.from));
    case Trend::flat:
      return fmt::format("time per token: flat {} ({})", span_text(v), ratio_text(v.time_ratio));
    case Trend::grows:
      return fmt::format("time per token: grows with length ({} {})", ratio_text(v.time_ratio), span_text(v));
    case Trend::falls:
      return fmt::format("time per token: falls with length ({} {})", ratio_text(v.time_ratio), span_text(v));
  }
  return "";
}

std::string profile_text(const Profile& profile) {
  std::string text = rows_text(profile);
  text += fmt::format("\n{}\n", ceilings_text(profile));
  for (const auto& curve : curves_of(profile)) {
    const Verdict v = verdict_of(curve);
    text += fmt::format("{}: {}; {}\n", curve_name(profile, curve.front()), state_verdict(v), time_verdict(v));
  }
  for (const ProfileRow& row : profile.rows)
    if (!row.ops.empty()) text += ops_text(profile, row);
  return text;
}

std::string profile_tsv(const Profile& profile) {
  std::string text =
      "mixer\tmode\tlength\tbatch\tthreads\tseconds_per_token\tseconds_per_token_low\tseconds_per_token_high\trepeats\t"
      "tokens_per_s\tstate_bytes\tresident_bytes\tflops_per_token\tbytes_per_token\tceiling_share\tceiling\tnote\n";
  std::string ops;
  for (const ProfileRow& r : profile.rows) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t", r.mixer, r.mode, r.length, r.batch, r.threads);
    if (r.measured())
      text += fmt::format("{:.6g}\t{:.6g}\t{:.6g}\t{}\t{:.6g}\t{}\t{}\t{:.9g}\t{:.9g}\t{:.4g}\t{}\t\n",
                          r.seconds_per_token, r.seconds_per_token_low, r.seconds_per_token_high, r.repeats,
                          r.tokens_per_s(), r.state_bytes, r.resident_bytes, r.flops_per_token, r.bytes_per_token,
                          r.ceiling_share, r.memory_bound ? "memory" : "products");
    else
      text += fmt::format("\t\t\t\t\t\t\t\t\t\t\t{}\n", r.note);
    for (const ProfileOp& op : r.ops)
      ops += fmt::format("{}\t{}\t{}\t{}\t{}\t{:.6g}\t{:.6g}\n", r.mixer, r.length, r.threads, op.op,
                         op.backward ? "backward" : "forward", op.calls, op.seconds);
  }
  if (!ops.empty()) text += fmt::format("\nmixer\tlength\tthreads\top\tpass\tcalls\tseconds\n{}", ops);
  return text;
}

Json profile_json(const Profile& profile) {
  Json json = json_report("profile", 1);
  json["products"] = profile.products;
  json["simd_target"] = profile.simd_target;
  Json& ceilings = json["ceilings"] = Json::array();
  for (const ProfileCeiling& c : profile.ceilings)
    ceilings.push_back({{"threads", c.threads}, {"flops_per_s", c.flops_per_s}, {"bytes_per_s", c.bytes_per_s}});
  Json& rows = json["rows"] = Json::array();
  for (const ProfileRow& row : profile.rows) rows.push_back(row_json(row));
  Json& verdicts = json["verdicts"] = Json::array();
  for (const auto& curve : curves_of(profile)) verdicts.push_back(verdict_json(curve.front(), verdict_of(curve)));
  return json;
}

PlotSheet profile_plots(const Profile& profile) {
  const std::string mode = profile.rows.empty() ? "" : profile.rows.front().mode;
  Plot time{.x = {"length (tokens)", AxisScale::log2},
            .y = {"time per token, " + mode + " (s)", AxisScale::log10},
            .series = {}};
  Plot memory{.x = {"length (tokens)", AxisScale::log2}, .y = {"peak memory (bytes)", AxisScale::log10}, .series = {}};
  for (const auto& curve : curves_of(profile)) {
    PlotSeries times, bytes;
    times.name = bytes.name = curve_name(profile, curve.front());
    for (const ProfileRow& row : curve) {
      if (!row.measured()) continue;
      const auto length = static_cast<double>(row.length);
      times.points.push_back(
          {length, row.seconds_per_token, (row.seconds_per_token_high - row.seconds_per_token_low) / 2});
      bytes.points.push_back({length, static_cast<double>(row.resident_bytes)});
    }
    time.series.push_back(times), memory.series.push_back(bytes);
  }
  return {{time, memory}, 2};
}

}  // namespace quipu
