#include "profile/cell.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/stop.h"
#include "mixers/registry.h"
#include "profile/workload.h"

using namespace quipu;

namespace {

CellRequest small(const std::string& mixer, ProfileMode mode, Index length) {
  CellRequest r;
  r.mixer = r.config.mixer = mixer;
  r.config.vocab = 13, r.config.dim = 16, r.config.layers = 2, r.config.heads = 2, r.config.length = 8;
  r.fit_context = true;
  r.mode = mode, r.length = length, r.batch = 2, r.seconds = 0;
  return r;
}

}  // namespace

TEST_CASE("cell: the state of every mixer has the bytes that its formula says, in every mode") {
  for (const MixerEntry& entry : registry()) {
    if (entry.channel) continue;
    for (const ProfileMode mode : {ProfileMode::decode, ProfileMode::prefill, ProfileMode::train})
      for (const Index length : {1, 21}) {
        INFO(entry.name << " " << mode_name(mode) << " " << length);
        const CellRequest request = small(entry.name, mode, length);
        const std::optional<ProfileRow> row = measure_cell(request);  // throws where they differ
        REQUIRE(row);
        CHECK(row->note == "");
        CHECK(row->state_bytes == LanguageModel(cell_config(request), false).state_bytes(length));
        CHECK(row->seconds_per_token > 0);
        CHECK(row->seconds_per_token_low <= row->seconds_per_token);
        CHECK(row->seconds_per_token <= row->seconds_per_token_high);
        CHECK(row->flops_per_token > 0);
        CHECK(row->bytes_per_token > 0);
      }
  }
}

TEST_CASE("cell: every operation of every mixer has a name, forward and backward, and the times make the whole") {
  for (const MixerEntry& entry : registry()) {
    if (entry.channel) continue;
    INFO(entry.name);
    CellRequest request = small(entry.name, ProfileMode::train, 21);
    request.by_op = true;
    const std::optional<ProfileRow> row = measure_cell(request);
    REQUIRE(row);
    const auto seconds = [&](const std::string& op, bool backward) {
      double sum = 0;
      for (const ProfileOp& o : row->ops)
        if (o.op == op && o.backward == backward) sum += o.seconds;
      return sum;
    };
    CHECK(seconds("other", true) == 0);
    CHECK(seconds("other", false) > 0);
    CHECK(seconds("linear", false) > 0);
    CHECK(seconds("linear", true) > 0);
    CHECK(seconds("head and loss", true) > 0);
    CHECK(seconds("optimizer", false) > 0);
  }
}

TEST_CASE("cell: a stretch beyond the context becomes a note") {
  CellRequest request = small("synthesizer", ProfileMode::prefill, 8);
  request.fit_context = false;
  CHECK(measure_cell(request)->measured());
  request.length = 9;
  CHECK(measure_cell(request)->note == "the model's context is 8 tokens");
  request.length = 8, request.mode = ProfileMode::decode;
  CHECK(measure_cell(request)->note == "the model's context is 8 tokens");
  request.length = 7;
  CHECK(measure_cell(request)->measured());
}

TEST_CASE("cell: a stop ends it") {
  set_time_limit(1e-9);
  for (const ProfileMode mode : {ProfileMode::decode, ProfileMode::prefill, ProfileMode::train})
    CHECK_FALSE(measure_cell(small("gsa", mode, 5)));
  reset_stop();
}

TEST_CASE("cell: requests and rows survive the way to another process") {
  CellRequest request = small("gsa", ProfileMode::train, 77);
  request.config.options["slots"] = "5", request.settings = {"a=b"}, request.by_op = true, request.seconds = 0.25;
  request.bf16 = true;
  const CellRequest back = request_from_json(to_json(request));
  CHECK(back.config == request.config);
  CHECK(back.bf16);
  CHECK(to_json(back) == to_json(request));
  ProfileRow row;
  row.mixer = "gsa", row.mode = "train", row.length = 77, row.batch = 3, row.repeats = 4;
  row.seconds_per_token_low = 0.1, row.seconds_per_token = 0.2, row.seconds_per_token_high = 0.3;
  row.state_bytes = 5, row.resident_bytes = 6, row.flops_per_token = 7, row.bytes_per_token = 8;
  row.ops = {{"linear", true, 2, 0.5}};
  CHECK(row_from_json(to_json(row)) == row);
  CHECK_THROWS_WITH_AS(row_from_json(to_json(row, InternalError("a {}", "bug").what())),
                       "internal error (please report it): a bug", InternalError);
  CHECK_THROWS_AS(row_from_json("{"), InternalError);
  CHECK_THROWS_AS(request_from_json("{}"), InternalError);
}

TEST_CASE("workload: a decoding stream stays at about its length") {
  const CellRequest request = small("attention", ProfileMode::decode, 21);
  LanguageModel model(request.config, false);
  model.parameters().initialise(1);
  DecodeWorkload workload(model, 21, 2, 1);
  for (int i = 0; i < 40; ++i) {
    REQUIRE(workload.ready());
    REQUIRE(workload.run());
    CHECK(workload.state_bytes() == 2 * model.state_bytes(21));
  }
  CHECK(decode_stretch(21) == 16);
  CHECK(decode_stretch(1024) == 128);
}
