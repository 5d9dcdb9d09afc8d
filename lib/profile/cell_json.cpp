#include <nlohmann/json.hpp>

#include "base/error.h"
#include "profile/cell.h"

namespace quipu {
namespace {

using Json = nlohmann::json;

constexpr const char* kBugOpening = "internal error (please report it): ";

Json parsed(const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const Json::exception&) {
    throw InternalError("a cell: {} bytes that are no JSON", text.size());
  }
}

}  // namespace

std::string to_json(const CellRequest& r) {
  return Json{{"mixer", r.mixer},
              {"model", r.model},
              {"settings", r.settings},
              {"config", to_json(r.config)},
              {"fit_context", r.fit_context},
              {"mode", mode_name(r.mode)},
              {"bf16", r.bf16},
              {"length", r.length},
              {"batch", r.batch},
              {"seconds", r.seconds},
              {"by_op", r.by_op},
              {"seed", r.seed}}
      .dump();
}

CellRequest request_from_json(const std::string& text) {
  const Json json = parsed(text);
  try {
    CellRequest r;
    json.at("mixer").get_to(r.mixer);
    json.at("model").get_to(r.model);
    json.at("settings").get_to(r.settings);
    r.config = config_from_json(json.at("config").get<std::string>());
    json.at("fit_context").get_to(r.fit_context);
    r.mode = mode_from_name(json.at("mode").get<std::string>());
    json.at("bf16").get_to(r.bf16);
    json.at("length").get_to(r.length);
    json.at("batch").get_to(r.batch);
    json.at("seconds").get_to(r.seconds);
    json.at("by_op").get_to(r.by_op);
    json.at("seed").get_to(r.seed);
    return r;
  } catch (const Json::exception& error) {
    throw InternalError("a cell: {}", error.what());
  }
}

std::string to_json(const ProfileRow& row, const std::string& failed) {
  Json ops = Json::array();
  for (const ProfileOp& op : row.ops) ops.push_back({op.op, op.backward, op.calls, op.seconds});
  return Json{{"mixer", row.mixer},
              {"mode", row.mode},
              {"note", row.note},
              {"length", row.length},
              {"batch", row.batch},
              {"repeats", row.repeats},
              {"seconds", {row.seconds_per_token_low, row.seconds_per_token, row.seconds_per_token_high}},
              {"state_bytes", row.state_bytes},
              {"resident_bytes", row.resident_bytes},
              {"flops", row.flops_per_token},
              {"bytes", row.bytes_per_token},
              {"ops", ops},
              {"failed", failed}}
      .dump(-1, ' ', true, Json::error_handler_t::replace);
}

ProfileRow row_from_json(const std::string& text) {
  const Json json = parsed(text);
  try {
    if (auto failed = json.at("failed").get<std::string>(); !failed.empty()) {
      const std::string_view opening = kBugOpening;  // which the error puts there again
      if (failed.starts_with(opening)) failed.erase(0, opening.size());
      throw InternalError("{}", failed);
    }
    ProfileRow row;
    json.at("mixer").get_to(row.mixer);
    json.at("mode").get_to(row.mode);
    json.at("note").get_to(row.note);
    json.at("length").get_to(row.length);
    json.at("batch").get_to(row.batch);
    json.at("repeats").get_to(row.repeats);
    row.seconds_per_token_low = json.at("seconds").at(0);
    row.seconds_per_token = json.at("seconds").at(1);
    row.seconds_per_token_high = json.at("seconds").at(2);
    json.at("state_bytes").get_to(row.state_bytes);
    json.at("resident_bytes").get_to(row.resident_bytes);
    json.at("flops").get_to(row.flops_per_token);
    json.at("bytes").get_to(row.bytes_per_token);
    for (const Json& op : json.at("ops")) row.ops.push_back({op.at(0), op.at(1), op.at(2), op.at(3)});
    return row;
  } catch (const Json::exception& error) {
    throw InternalError("a row: {}", error.what());
  }
}

}  // namespace quipu
