#include "cli/report.h"

#include <doctest/doctest.h>

#include <limits>

#include "base/error.h"

using namespace quipu;

TEST_CASE("report: tables align numbers to the right and words to the left") {
  Table table({"mixer", "loss_nats", "note"});
  table.row({"gsa", "1.5", "h\xC3\xA9"});
  table.row({"attention", "-", "x"});
  table.row({"a", "-12.25", ""});
  CHECK(table.text() ==
        "mixer      loss_nats  note\n"
        "gsa              1.5  h\xC3\xA9\n"
        "attention          -  x\n"
        "a             -12.25\n");
  CHECK_THROWS_AS(table.row({"too few"}), InternalError);
  Table plain({"", ""});
  plain.row({"model", "gsa"});
  plain.row({"parameters", "1.2 M"});
  CHECK(plain.text() == "model       gsa\nparameters  1.2 M\n");
  CHECK(Table({"a", "b"}).text() == "a  b\n");
}

TEST_CASE("report: json keeps its order, and what is not finite is null") {
  Json json = json_report("eval-ppl", 2);
  json["tokens"] = std::numeric_limits<std::int64_t>::max();
  json["nll_sum_nats"] = std::numeric_limits<double>::infinity();
  json["bits_per_byte"] = std::numeric_limits<double>::quiet_NaN();
  json["a"] = 0.1;
  json["text"] = "\xFFz\n";
  CHECK(json_line(json) ==
        "{\"schema\":\"quipu-eval-ppl-2\",\"tokens\":9223372036854775807,\"nll_sum_nats\":null,\"bits_per_byte\":null,"
        "\"a\":0.1,\"text\":\"\xEF\xBF\xBDz\\n\"}\n");
}

TEST_CASE("human: counts, bytes, durations, groups") {
  CHECK(human_count(0) == "0");
  CHECK(human_count(999) == "999");
  CHECK(human_count(1234) == "1.2 k");
  CHECK(human_count(999.6) == "1 k");
  CHECK(human_count(999999) == "1 M");
  CHECK(human_count(123456789) == "123 M");
  CHECK(human_count(-1500) == "-1.5 k");
  CHECK(human_bytes(512) == "512 B");
  CHECK(human_bytes(3.4e9) == "3.4 GB");
  CHECK(human_duration(0.52) == "520 ms");
  CHECK(human_duration(12.34) == "12.3 s");
  CHECK(human_duration(59.97) == "1 min 00 s");
  CHECK(human_duration(89) == "1 min 29 s");
  CHECK(human_duration(3720) == "1 h 02 min");
  CHECK(human_duration(3599.9) == "1 h 00 min");
  CHECK(human_duration(86399) == "1 d 00 h");
  CHECK(human_duration(183600) == "2 d 03 h");
  CHECK(human_duration(std::numeric_limits<double>::infinity()) == "unknown");
  CHECK(grouped(0) == "0");
  CHECK(grouped(-999) == "-999");
  CHECK(grouped(-1234567) == "-1,234,567");
  CHECK(grouped(1000) == "1,000");
}
