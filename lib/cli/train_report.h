#pragma once
#include "cli/app.h"
#include "cli/report.h"
#include "train/trainer.h"

namespace quipu {

/// What `train` says before it starts, as notes on standard error: the model, the data, threads and products.
void note_start(const Trainer& trainer, const Dataset& data, const Common& common);
/// The memory that the run expects to need.
void note_memory(const MemoryEstimate& memory);

/// One line of the log in words.
std::string line_text(const LogLine& line);

/// --dry-run: parameters, state, memory, FLOPs.
void print_dry_run(Trainer& trainer, const MemoryEstimate& memory, bool json);

/// The end of a run.
void print_summary(const TrainSummary& summary, const Trainer& trainer, bool json, Stream stream);

}  // namespace quipu
