#include "profile/cell.h"

#include <algorithm>
#include <new>

#include "profile/cost.h"
#include "profile/process_memory.h"
#include "profile/workload.h"
#include "tensor/linear_products.h"
#include "train/model_checkpoint.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

std::unique_ptr<LanguageModel> build_model(const CellRequest& request) {
  const bool trains = request.mode == ProfileMode::train;
  if (!request.model.empty()) return load_model(CheckpointFile(request.model), trains, request.settings);
  auto model = std::make_unique<LanguageModel>(cell_config(request), trains);
  model->parameters().initialise(request.seed);
  return model;
}

std::unique_ptr<Workload> make_workload(LanguageModel& model, const CellRequest& r) {
  switch (r.mode) {
    case ProfileMode::decode:
      return std::make_unique<DecodeWorkload>(model, r.length, r.batch, r.seed);
    case ProfileMode::prefill:
      return std::make_unique<PrefillWorkload>(model, r.length, r.batch, r.seed);
    case ProfileMode::train:
      return std::make_unique<TrainWorkload>(model, r.length, r.batch, r.seed);
  }
  throw InternalError("a mode of number {}", static_cast<int>(r.mode));
}

void require_state(const LanguageModel& model, const CellRequest& request, Index bytes) {
  const Index wanted = request.batch * model.state_bytes(request.length);
  if (bytes != wanted)
    throw InternalError("{} at {} tokens: a state of {} bytes, where the model's formula says {}", request.mixer,
                        request.length, bytes, wanted);
}

/// False where a stop was asked for.
bool measure(const CellRequest& request, ProfileRow& row) {
  const std::size_t idle = resident_now();
  set_linear_precision(request.bf16 ? Precision::bf16 : Precision::f32);
  const auto model = build_model(request);
  if (row.note = why_impossible(*model, request); !row.note.empty()) return true;
  forget_peak();
  const auto workload = make_workload(*model, request);
  const std::optional<Spread> seconds = time_runs(*workload, request.seconds);
  if (!seconds) return false;
  row.resident_bytes = static_cast<Index>(std::max(resident_peak(), idle) - idle);
  const std::optional<Index> state = workload->state_bytes();
  if (!state) return false;
  require_state(*model, request, *state);
  row.state_bytes = *state / request.batch;
  const Spread a_token = seconds->scaled(1 / static_cast<double>(workload->tokens()));
  row.seconds_per_token_low = a_token.low, row.seconds_per_token = a_token.median;
  row.seconds_per_token_high = a_token.high, row.repeats = a_token.count;
  const TokenCost cost = token_cost(*model, request.mode, request.length, request.batch, workload->kept_bytes());
  row.flops_per_token = cost.flops, row.bytes_per_token = cost.bytes;
  if (!request.by_op) return true;
  const auto ops = watch_runs(*workload, request.seconds / 2);
  if (ops) row.ops = *ops;
  return ops.has_value();
}

}  // namespace

ModelConfig cell_config(const CellRequest& request) {
  ModelConfig config = request.config;
  if (!request.fit_context) return config;
  ModelConfig probe = config;
  probe.length = request.length;
  if (LanguageModel(probe, false, matrices_in(NumberFormat::q4)).memory() != Memory::fixed_length) return config;
  config.length = request.length + (request.mode == ProfileMode::decode ? decode_stretch(request.length) : 0);
  return config;
}

Index decode_stretch(Index length) { return std::max<Index>(16, length / 8); }

std::string why_impossible(const LanguageModel& model, const CellRequest& request) {
  const Index context = model.config().length, drawn = request.mode == ProfileMode::decode ? 1 : 0;
  if (model.memory() != Memory::fixed_length || request.length + drawn <= context) return "";
  return fmt::format("the model's context is {} tokens", context);
}

std::optional<ProfileRow> measure_cell(const CellRequest& request) {
  ProfileRow row;
  row.mixer = request.mixer, row.mode = mode_name(request.mode);
  row.length = request.length, row.batch = request.batch;
  try {
    if (!measure(request, row)) return std::nullopt;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    row.note = error.what();
  } catch (const std::bad_alloc&) {
    row.note = "memory: there is not enough; use a smaller model, batch or length";
  }
  return row;
}

}  // namespace quipu::inline QUIPU_REAL_NS
