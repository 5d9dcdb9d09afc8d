#include "cli/profile_run.h"

#include <algorithm>

#include "base/log.h"
#include "base/stop.h"
#include "base/threads.h"
#include "cli/cell_process.h"
#include "cli/console.h"
#include "cli/profile_report.h"
#include "cli/progress.h"
#include "profile/ceiling.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"
#include "tensor/linear_products.h"

namespace quipu {
namespace {

class Run {
 public:
  Run(const ProfileRequest& request, const Common& common, const std::string& command)
      : request_(request), common_(common), cells_(cells_of(request, common.seed)) {
    if (request.tsv && common.json) throw UsageError("--tsv and --json exclude each other; give one of them");
    refuse_input_as_output(request.output, {request.model});
    if (request.shape.precision == "bf16") set_linear_precision(Precision::bf16);
    if (request.plot) plot_.emplace(*request.plot);
    if (!request.output.empty()) file_.emplace(request.output);
    profile_.products = blas::product_names();
    if (linear_precision() == Precision::bf16) profile_.products += "; linear layers in bf16";
    profile_.simd_target = kernels::simd_target();
    profile_.provenance.commands = {command};
  }

  Status operator()() {
    const std::size_t all = cells_.size() * common_.thread_list.size();
    const bool whole = measure_all(static_cast<double>(all));
    if (!whole)
      log_note("stopped by {} after {} of {} cells, which are reported", stop_reason(), profile_.rows.size(), all);
    const bool any = std::ranges::any_of(profile_.rows, &ProfileRow::measured);
    report(any);
    if (!whole) return Status::kStopped;
    return any ? Status::kDone : Status::kFailed;
  }

 private:
  /// False where a stop was asked for.
  bool measure_all(double cells) {
    Progress bar("profile", "cells", cells);
    double done = 0;
    for (const int threads : common_.thread_list) {
      set_threads(threads);
      const Ceiling ceiling = probe_ceiling();
      profile_.ceilings.push_back({threads, ceiling.flops_per_s, ceiling.bytes_per_s});
      for (const CellRequest& cell : cells_) {
        bar.update(done++, fmt::format("{} at {}", cell.mixer, grouped(cell.length)));
        std::optional<ProfileRow> row = stop_requested() ? std::nullopt : measure_apart(cell, threads, common_.blas);
        if (!row) return false;
        if (row->measured()) {
          row->memory_bound = ceiling.memory_bound(row->flops_per_token, row->bytes_per_token);
          row->ceiling_share = ceiling.seconds(row->flops_per_token, row->bytes_per_token) / row->seconds_per_token;
        }
        profile_.rows.push_back(std::move(*row));
      }
    }
    return true;
  }

  /// any: something was measured.
  void report(bool any) {
    if (file_ && any) file_->write(profile_);
    if (plot_ && any) plot_->write(profile_plots(profile_));
    if (file_ && !any) log_warning("-o {}: nothing was measured, so nothing is written", request_.output);
    if (plot_ && !any) log_warning("--plot {}: nothing was measured, so nothing is drawn", *request_.plot);
    const Stream stream = request_.output == "-" ? Stream::kError : Stream::kOutput;
    if (common_.json) return print_json(profile_json(profile_), stream);
    print_text(request_.tsv ? profile_tsv(profile_) : profile_text(profile_), stream);
  }

  const ProfileRequest& request_;
  const Common& common_;
  std::vector<CellRequest> cells_;
  std::optional<PlotFile> plot_;
  std::optional<ProfileFile> file_;
  Profile profile_;
};

}  // namespace

Status run_profile(const ProfileRequest& request, const Common& common, const std::string& command) {
  if (!request.cell.empty()) return answer_cell(request.cell), Status::kDone;
  return Run(request, common, command)();
}

}  // namespace quipu
