#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/train_command.h"
#include "profile/cell.h"

namespace quipu {

/// What `profile` is asked for.
struct ProfileRequest {
  std::string model;             ///< a checkpoint; empty: --mixer
  std::string mixers;            ///< names between commas
  TrainRequest shape;            ///< of the models that --mixer makes: the options of a model alone
  std::optional<Index> vocab;    ///< --vocab
  std::optional<Index> context;  ///< --seq-len

  std::string mode = "decode";
  std::string lengths = "128:131072";
  Index batch = 1;
  double seconds = 1;
  bool by_op = false;

  bool tsv = false;
  std::string output;  ///< empty: none
  std::optional<std::string> plot;
  std::string cell;  ///< of the processes that measure: a cell as JSON
};

void add_profile_options(Command& tool, ProfileRequest& request);

/// "128:131072": doubled from the first as long as the last is not passed; or lengths between commas, or both:
/// "1000,1024:8192". Ascending, each once. Throws UsageError.
std::vector<Index> parse_lengths(const std::string& text);

/// Names between commas; in a pattern for several layers a plus stands for its comma (3xgsa+attention); "all": every
/// token mixer. Throws UsageError for an empty name.
std::vector<std::string> parse_mixers(const std::string& text);

/// A cell for each model and length, the lengths of a model one after another. All models have been tried. Throws
/// UsageError or InputError where one cannot be built.
std::vector<CellRequest> cells_of(const ProfileRequest& request, std::uint64_t seed);

}  // namespace quipu
