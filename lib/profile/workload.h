#pragma once
#include <optional>
#include <vector>

#include "models/language_model.h"
#include "profile/spread.h"
#include "store/profile_file.h"
#include "train/optimizer.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Random tokens, the same for the same seed.
std::vector<std::int32_t> random_tokens(Index count, Index vocab, std::uint64_t seed);

/// Reads `length` random tokens in every lane, in the chunks in which prompts are read, from the start of a document.
/// Returns the state behind them, or nothing where a stop was asked for.
std::optional<ModelState> read_tokens(const LanguageModel& model, Index length, Index lanes, std::uint64_t seed);

/// Something that can be done again and again, to be timed.
class Workload {
 public:
  explicit Workload(Index lanes) : lanes_(lanes) {}
  virtual ~Workload() = default;

  /// Whether `ready` takes no longer than `seconds`, as far as one knows.
  virtual bool is_ready_within(double) const { return true; }
  /// What has to be done before a run and is no part of it. False where a stop was asked for.
  virtual bool ready() { return true; }
  /// One repeat. False where a stop was asked for.
  virtual bool run() = 0;

  /// Tokens that a run reads, draws or trains on.
  virtual Index tokens() const = 0;
  /// After a run: bytes of all lanes' state behind the tokens; nothing where a stop was asked for.
  virtual std::optional<Index> state_bytes() = 0;
  /// Bytes of activations that wait for the backward pass.
  virtual double kept_bytes() const { return 0; }

 protected:
  Index lanes_;
};

/// Seconds of a run: one that is not measured, then others until their spread is settled or `seconds` are over. A first
/// run that takes many times as long, and is slower for its fresh memory, is the one that counts. Nothing where a stop
/// was asked for.
std::optional<Spread> time_runs(Workload& workload, double seconds);

/// Where the time of a run goes, by kind of operation, the longest first: the mean over runs for `seconds`, one at
/// least. Nothing where a stop was asked for.
std::optional<std::vector<ProfileOp>> watch_runs(Workload& workload, double seconds);

/// One token more for every lane, after `length` that were read; then the next, as long as they are few beside it.
class DecodeWorkload final : public Workload {
 public:
  DecodeWorkload(const LanguageModel& model, Index length, Index lanes, std::uint64_t seed);
  bool is_ready_within(double seconds) const override { return drawn_ < stretch_ || read_s_ <= seconds; }
  bool ready() override;
  bool run() override;
  Index tokens() const override { return lanes_; }
  std::optional<Index> state_bytes() override { return state_bytes_; }

 private:
  void step();

  const LanguageModel& model_;
  Index length_, stretch_, drawn_;
  std::uint64_t seed_;
  ModelState state_;
  Scratch scratch_;
  Tensor logits_;
  std::vector<std::int32_t> next_;
  double read_s_ = 0;
  std::optional<Index> state_bytes_;
};

/// Reading `length` tokens.
class PrefillWorkload final : public Workload {
 public:
  PrefillWorkload(const LanguageModel& model, Index length, Index lanes, std::uint64_t seed)
      : Workload(lanes), model_(model), length_(length), seed_(seed) {}
  bool run() override;
  Index tokens() const override { return lanes_ * length_; }
  std::optional<Index> state_bytes() override { return state_bytes_; }

 private:
  const LanguageModel& model_;
  Index length_;
  std::uint64_t seed_;
  std::optional<Index> state_bytes_;
};

/// A training step on sequences of `length` tokens: forward, backward, the gradients' norm, AdamW.
class TrainWorkload final : public Workload {
 public:
  TrainWorkload(LanguageModel& model, Index length, Index lanes, std::uint64_t seed);
  bool run() override;
  Index tokens() const override { return lanes_ * length_; }
  std::optional<Index> state_bytes() override;
  double kept_bytes() const override { return kept_bytes_; }

 private:
  LanguageModel& model_;
  Index length_;
  std::uint64_t seed_;
  Optimizer optimizer_;
  Layout layout_;
  std::vector<std::int32_t> tokens_, targets_;
  double kept_bytes_ = 0;
};

}  // namespace quipu::inline QUIPU_REAL_NS
