#include "cli/profile_report.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "cli/profile_command.h"

using namespace quipu;

namespace {

ProfileRow row(const std::string& mixer, Index length, double seconds, Index state) {
  ProfileRow r;
  r.mixer = mixer, r.mode = "decode", r.length = length, r.repeats = 9;
  r.seconds_per_token = seconds, r.seconds_per_token_low = 0.9 * seconds, r.seconds_per_token_high = 1.1 * seconds;
  r.state_bytes = state, r.resident_bytes = 1000 * state, r.flops_per_token = 1e6, r.bytes_per_token = 1e5;
  r.ceiling_share = 0.5;
  return r;
}

Profile sample() {
  Profile p;
  p.products = "OpenBLAS, Haswell kernels", p.simd_target = "AVX2", p.ceilings = {{1, 1e11, 1e10}};
  p.rows = {row("gsa", 128, 1e-3, 262144), row("gsa", 131072, 1.02e-3, 262144), row("attention", 128, 1e-3, 65544),
            row("attention", 131072, 31e-3, 67108872), row("attention", 262144, 0, 0)};
  p.rows[4].note = "memory: no more";
  p.rows[0].ops = {{"linear", false, 8, 3e-3}, {"linear", true, 8, 4e-3}, {"other", false, 0, 1e-3}};
  return p;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("profile report: the verdict's words") {
  const Profile p = sample();
  const auto curves = curves_of(p);
  REQUIRE(curves.size() == 2);
  const Verdict gsa = verdict_of(curves[0]), attention = verdict_of(curves[1]);
  CHECK(state_verdict(gsa) == "state constant: yes (262,144 bytes)");
  CHECK(time_verdict(gsa) == "time per token: flat from 128 to 131,072 (x1.02)");
  CHECK(state_verdict(attention) == "state constant: no (65,544 bytes at 128, 67,108,872 at 131,072)");
  CHECK(time_verdict(attention) == "time per token: grows with length (x31 from 128 to 131,072)");
  const Verdict falling = verdict_of(std::vector{row("a", 1, 2, 8), row("a", 2, 0.5, 8)});
  CHECK(time_verdict(falling) == "time per token: falls with length (x0.25 from 1 to 2)");
  const Verdict one = verdict_of(std::vector{row("a", 1024, 2, 8)});
  CHECK(state_verdict(one) == "state: 8 bytes at 1,024");
  CHECK(time_verdict(one) == "time per token: measured at 1,024 alone");
  CHECK(time_verdict({}) == "time per token: not measured");
}

TEST_CASE("profile report: the table has a line for each row, notes, ceilings, verdicts and operations") {
  const std::string text = profile_text(sample());
  CHECK(has(text, "1.02 ms"));
  CHECK(has(text, "10.0 %"));
  CHECK(has(text, "attention at 262,144: not measured: memory: no more\n"));
  CHECK(has(text,
            "ceiling with 1 thread: 100 GFLOP/s in products, 10 GB/s from memory (OpenBLAS, Haswell kernels; AVX2)"));
  CHECK(has(text, "gsa: state constant: yes (262,144 bytes); time per token: flat"));
  CHECK(has(text, "linear      87.5  7.000        3.000         4.000      8\n"));
  CHECK(has(text, "all        100.0  8.000        4.000         4.000      8\n"));
}

TEST_CASE("profile report: every line of the TSV's tables has all columns") {
  const std::string text = profile_tsv(sample());
  const std::size_t gap = text.find("\n\n");
  REQUIRE(gap != std::string::npos);
  for (const auto& [begin, end, tabs] : {std::tuple{std::size_t{0}, gap, 16}, {gap + 2, text.size(), 6}}) {
    std::size_t lines = 0;
    for (std::size_t at = begin; at < end; ++lines) {
      const std::size_t stop = std::min(text.find('\n', at), end);
      CHECK(std::count(text.begin() + static_cast<long>(at), text.begin() + static_cast<long>(stop), '\t') == tabs);
      at = stop + 1;
    }
    CHECK(lines == (begin == 0 ? 6 : 4));
  }
}

TEST_CASE("profile report: JSON and plots hold what was measured") {
  const Profile p = sample();
  const Json json = profile_json(p);
  CHECK(json["schema"] == "quipu-profile-1");
  CHECK(json["rows"].size() == 5);
  CHECK(json["rows"][4]["note"] == "memory: no more");
  CHECK_FALSE(json["rows"][4].contains("seconds_per_token"));
  CHECK(json["rows"][0]["ops"][1]["share"] == doctest::Approx(0.5));
  CHECK(json["verdicts"][1]["time"] == "grows");
  const PlotSheet sheet = profile_plots(p);
  const std::vector<Plot>& plots = sheet.panels;
  REQUIRE(plots.size() == 2);
  CHECK(plots[0].series.size() == 2);
  CHECK(plots[0].series[1].points.size() == 2);
  CHECK(plots[1].series[0].points[0].y == 262144000);
  const std::string script = plot_script(sheet, "svg");
  CHECK(has(script, "set multiplot layout 1,2"));
  CHECK(has(script, "$panel1_1"));
}

TEST_CASE("profile report: lengths and mixers on the command line") {
  CHECK(parse_lengths("128:1024") == std::vector<Index>{128, 256, 512, 1024});
  CHECK(parse_lengths("100:350") == std::vector<Index>{100, 200});
  CHECK(parse_lengths("7,3,3:6,7") == std::vector<Index>{3, 6, 7});
  CHECK(parse_lengths("1k") == std::vector<Index>{1000});
  for (const char* bad : {"", "0", "8:4", "a", "4:", "1,,2"}) CHECK_THROWS_AS(parse_lengths(bad), UsageError);
  CHECK(parse_mixers("gsa,3xgsa+attention") == std::vector<std::string>{"gsa", "3xgsa+attention"});
  CHECK(parse_mixers("all").size() > 20);
  CHECK_THROWS_AS(parse_mixers("gsa,"), UsageError);
}
