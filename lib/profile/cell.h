#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/language_model.h"
#include "profile/mode.h"
#include "store/profile_file.h"

namespace quipu {

/// One model at one length.
struct CellRequest {
  std::string mixer;                  ///< how the row is called
  std::string model;                  ///< a checkpoint; empty: random weights
  std::vector<std::string> settings;  ///< of a checkpoint's mixers, KEY=VALUE
  ModelConfig config;                 ///< without a checkpoint
  bool fit_context = false;           ///< a model of fixed length is built as long as the cell needs it
  ProfileMode mode = ProfileMode::decode;
  bool bf16 = false;  ///< linear layers are trained so
  Index length = 128, batch = 1;
  double seconds = 1;  ///< for repeats
  bool by_op = false;
  std::uint64_t seed = 1;
};

std::string to_json(const CellRequest& request);
/// Throws InternalError for a text that `to_json` did not write.
CellRequest request_from_json(const std::string& json);

/// A row as another process hands it on; `failed`: the message of a bug that it met, else empty.
std::string to_json(const ProfileRow& row, const std::string& failed = "");
/// Throws InternalError where the row says that it failed, or for a text that is none.
ProfileRow row_from_json(const std::string& json);

inline namespace QUIPU_REAL_NS {

/// The configuration of a cell: where the context has to fit it, as long as it reads and draws.
ModelConfig cell_config(const CellRequest& request);

/// Tokens that decoding draws, at most, after `length`: few beside it, so that all steps are at about this length.
Index decode_stretch(Index length);

/// Why a model cannot do what the cell asks for, or "": its context is too short.
std::string why_impossible(const LanguageModel& model, const CellRequest& request);

/// Measures a cell in this process, which has to be fresh for its memory to mean something: all of a row but threads
/// and ceiling. A lack of memory, a context that is too short and the like become the row's note. Nothing where a stop
/// was asked for. Throws InternalError where the state does not have the bytes that the model's formula says.
std::optional<ProfileRow> measure_cell(const CellRequest& request);

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
