#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "grad/tape.h"

namespace quipu::inline QUIPU_REAL_NS {

/// One part of a mixer's memory: an array of Real [B,..], or integers (a position or a count: a stream is longer than
/// a float counts to).
struct StateLeaf {
  std::string name;
  std::string axes;                    ///< letters of the axes after the lanes, as in "H K V"; empty for integers
  Var value;                           ///< [B,..]; undefined for an integer leaf
  std::vector<std::int64_t> integers;  ///< one a lane; empty for a real leaf

  bool is_integer() const { return !value.defined(); }
};

/// The memory of a mixer over B lanes: a plain value that can be copied, compared and saved. Real leaves are variables,
/// so that a state can also stand on the tape and hand gradients across a segment boundary; `detach` cuts them there.
/// Copies share storage until somebody writes (`writable`).
class State {
 public:
  /// value: [B, ..], an extent for every letter of `axes`.
  void add_real(std::string name, std::string axes, Tensor value);
  void add_integer(std::string name, Index lanes) {
    leaves_.push_back({std::move(name), "", Var(), std::vector<std::int64_t>(static_cast<std::size_t>(lanes), 0)});
  }

  std::vector<StateLeaf>& leaves() { return leaves_; }
  const std::vector<StateLeaf>& leaves() const { return leaves_; }
  Index lanes() const;

  Var& real(std::size_t leaf) { return leaves_[leaf].value; }
  const Var& real(std::size_t leaf) const { return leaves_[leaf].value; }
  std::vector<std::int64_t>& integers(std::size_t leaf) { return leaves_[leaf].integers; }
  const std::vector<std::int64_t>& integers(std::size_t leaf) const { return leaves_[leaf].integers; }
  /// The storage of a real leaf, its own, for writing in place (recurrent step).
  Tensor& writable(std::size_t leaf) { return leaves_[leaf].value.mutable_value().unique(); }

  /// Values without their gradients.
  State detached() const;
  /// The lanes `lanes`, in this order; a lane may come several times (beams).
  State gather(std::span<const Index> lanes) const;
  /// Lane `lane` set to lane 0 of `source`, a state of one lane with the same leaves.
  void set_lane(Index lane, const State& source);
  /// Bytes of all leaves, as float32 and 64-bit integers.
  Index bytes() const;
  /// What a lane holds, in the letters of the axes: "H K V + H K", with "+ 1 count" for an integer.
  std::string formula() const;

 private:
  std::vector<StateLeaf> leaves_;
};

/// Extents of `x` with the first one, the lanes, replaced.
Shape with_lanes(Shape shape, Index lanes);

}  // namespace quipu::inline QUIPU_REAL_NS
