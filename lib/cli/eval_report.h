#pragma once
#include <string>

#include "cli/plot.h"
#include "cli/report.h"
#include "train/line_scorer.h"
#include "train/position_bins.h"

namespace quipu {

/// What an evaluation was of, for its report.
struct EvalSubject {
  std::string model, data;
  std::string split;  ///< empty: a text
  Protocol protocol;
  std::string prefix;  ///< text
  double wall_s = 0;
};

/// The report of eval-ppl in words, and as an object. Figures that are not defined are null, or "-" in words.
std::string eval_report_text(const EvalSubject& subject, const EvalResult& result);
Json eval_report_json(const EvalSubject& subject, const EvalResult& result);

/// Loss against the length of the context. A standard error that is not known is null, or "-" in words.
Table position_table(const PositionBins& bins);
Json position_json(const PositionBins& bins);
/// Each bin at the mean of its contexts, with its standard error.
Plot position_plot(const PositionBins& bins);

/// A line of --per-token: position, token id, text and nll in nats, parted by tabs.
std::string token_line(const TokenScore& score, const Tokenizer& tokenizer);

/// A line of --per-line: line number, tokens, nll in nats, bits per byte and perplexity per token, parted by tabs.
std::string line_line(const LineScore& score);
Json line_json(const LineScore& score);

}  // namespace quipu
