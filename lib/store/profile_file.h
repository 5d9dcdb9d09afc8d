#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/real.h"
#include "store/provenance.h"

namespace quipu {

inline const H5Format kProfileFormat{"quipu-profile", 1};

/// Seconds of one kind of operation, in a step or reading of a row's whole batch.
struct ProfileOp {
  std::string op;
  bool backward = false;
  double calls = 0;
  double seconds = 0;
  bool operator==(const ProfileOp&) const = default;
};

/// What one model costs at one length.
struct ProfileRow {
  std::string mixer, mode;
  std::string note;  ///< why there is no measurement; empty: there is one
  Index length = 0, batch = 1, threads = 1;
  Index repeats = 0;
  double seconds_per_token = 0;  ///< median, and its quartiles
  double seconds_per_token_low = 0, seconds_per_token_high = 0;
  Index state_bytes = 0;     ///< of one sequence
  Index resident_bytes = 0;  ///< peak of the process, beyond what it takes idle
  double flops_per_token = 0, bytes_per_token = 0;
  double ceiling_share = 0;   ///< the least time that the machine's own ceilings allow, over the time taken
  bool memory_bound = false;  ///< that ceiling is the memory's bandwidth, else that of products
  std::vector<ProfileOp> ops;

  bool measured() const { return note.empty(); }
  double tokens_per_s() const { return seconds_per_token > 0 ? 1 / seconds_per_token : 0; }
  bool operator==(const ProfileRow&) const = default;
};

/// What the machine can do with so many threads.
struct ProfileCeiling {
  Index threads = 1;
  double flops_per_s = 0, bytes_per_s = 0;
  bool operator==(const ProfileCeiling&) const = default;
};

/// A run of `profile`.
struct Profile {
  std::string products;     ///< who computes them
  std::string simd_target;  ///< the instructions of all else
  std::vector<ProfileCeiling> ceilings;
  std::vector<ProfileRow> rows;
  Provenance provenance;
  bool operator==(const Profile&) const = default;
};

/// A file of columns: /ceilings/NAME and /rows/NAME have an element for each of them, /ops/NAME for each operation of a
/// row, whose number is /ops/row. Columns of words are texts with a line for each.
void save_profile(const std::string& path, const Profile& profile);

/// The same while it is still to be measured: opens the output first, so that one that cannot be written shows before
/// the work.
class ProfileFile {
 public:
  explicit ProfileFile(const std::string& path) : file_(path, kProfileFormat) {}
  /// Call once.
  void write(const Profile& profile);

 private:
  H5Writer file_;
};

/// Throws InputError for a file that is none, or whose columns have different lengths.
Profile load_profile(const std::string& path);
Profile read_profile(const H5Reader& file);

}  // namespace quipu
