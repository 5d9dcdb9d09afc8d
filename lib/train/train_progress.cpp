#include "train/train_progress.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace quipu {
namespace {

nlohmann::ordered_json optional_number(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

std::optional<double> optional_from(const nlohmann::json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

}  // namespace

std::string to_json(const TrainProgress& p) {
  const nlohmann::ordered_json json{{"step", p.step},
                                    {"tokens", p.tokens},
                                    {"evaluated", p.evaluated},
                                    {"logged", p.logged},
                                    {"last_valid_nats", optional_number(p.last_valid_nats)},
                                    {"best_valid_nats", optional_number(p.best_valid_nats)},
                                    {"best_step", p.best_step},
                                    {"loss_sum_nats", p.loss_sum_nats},
                                    {"loss_tokens", p.loss_tokens},
                                    {"gradient_norm", p.gradient_norm},
                                    {"last_loss_nats", p.last_loss_nats},
                                    {"settings", p.settings},
                                    {"threads", p.threads},
                                    {"products", p.products},
                                    {"carried_integers", p.carried_integers}};
  return json.dump(2);
}

TrainProgress progress_from_json(const std::string& text, const std::string& where) {
  if (text.empty())
    throw InputError("{}: holds a model without its training; start from its weights with --init", where);
  try {
    const auto json = nlohmann::json::parse(text);
    TrainProgress p;
    json.at("step").get_to(p.step);
    json.at("tokens").get_to(p.tokens);
    json.at("evaluated").get_to(p.evaluated);
    json.at("logged").get_to(p.logged);
    p.last_valid_nats = optional_from(json.at("last_valid_nats"));
    p.best_valid_nats = optional_from(json.at("best_valid_nats"));
    json.at("best_step").get_to(p.best_step);
    json.at("loss_sum_nats").get_to(p.loss_sum_nats);
    json.at("loss_tokens").get_to(p.loss_tokens);
    json.at("gradient_norm").get_to(p.gradient_norm);
    json.at("last_loss_nats").get_to(p.last_loss_nats);
    json.at("settings").get_to(p.settings);
    json.at("threads").get_to(p.threads);
    p.products = json.value("products", "");
    json.at("carried_integers").get_to(p.carried_integers);
    return p;
  } catch (const nlohmann::json::exception& error) {
    throw InputError("{}: its progress cannot be read ({}); was it made by another version?", where, error.what());
  }
}

}  // namespace quipu
