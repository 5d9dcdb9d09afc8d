#include "train/question_rows.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace quipu {
namespace {

std::vector<std::int32_t> start_of(const Tokenizer& tokenizer) {
  if (const auto end = tokenizer.end_of_document()) return {*end};
  return tokenizer.encode("\n");
}

Index common_prefix(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  return static_cast<Index>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// How many tokens to drop from the beginning of `length`, with an error where that is not allowed.
Index surplus(Index length, const TokenLimit& limit, const std::string& where) {
  const Index most = limit.most();
  if (most == 0 || length <= most) return 0;
  if (limit.truncate == 0)
    throw InputError("{}: has {} tokens, and the model can read {}; cut them with --max-tokens {}", where, length, most,
                     most);
  return length - most;
}

}  // namespace

Continuations encode_continuations(const Tokenizer& tokenizer, std::string_view context,
                                   const std::vector<std::string>& continuations) {
  const std::vector<std::int32_t> alone = tokenizer.encode(context);
  const auto length = static_cast<Index>(alone.size());
  Continuations out;
  out.scored_from = length;
  for (const std::string& continuation : continuations) {
    out.tokens.push_back(tokenizer.encode(std::string(context) + continuation));
    const Index shared = common_prefix(alone, out.tokens.back());
    out.joints += shared < length ? 1 : 0;
    out.scored_from = std::min(out.scored_from, shared);
  }
  if (out.scored_from > 0) return out;
  const std::vector<std::int32_t> start = start_of(tokenizer);
  for (auto& tokens : out.tokens) tokens.insert(tokens.begin(), start.begin(), start.end());
  out.scored_from = static_cast<Index>(start.size());
  return out;
}

ScoredRow row_of(const std::vector<std::int32_t>& tokens, Index scored_from, const TokenLimit& limit,
                 const std::string& where, bool& truncated) {
  const auto count = static_cast<Index>(tokens.size()) - 1;  // the last token is only predicted
  const Index drop = surplus(count, limit, where);
  if (drop > scored_from - 1)
    throw InputError("{}: {} tokens are to be scored, and {} can be read; give a larger --max-tokens", where,
                     static_cast<Index>(tokens.size()) - scored_from, limit.most());
  truncated = truncated || drop > 0;
  ScoredRow row;
  row.inputs.assign(tokens.begin() + drop, tokens.end() - 1);
  row.targets.assign(row.inputs.size(), kNoTarget);
  for (Index t = scored_from; t <= count; ++t)
    row.targets[static_cast<std::size_t>(t - 1 - drop)] = tokens[static_cast<std::size_t>(t)];
  return row;
}

std::vector<std::int32_t> prompt_of(const Tokenizer& tokenizer, std::string_view text, Index room,
                                    const TokenLimit& limit, const std::string& where, bool& truncated) {
  std::vector<std::int32_t> tokens = tokenizer.encode(text);
  if (tokens.empty()) tokens = start_of(tokenizer);
  const Index drop = surplus(static_cast<Index>(tokens.size()) + room, limit, where);
  if (drop >= static_cast<Index>(tokens.size()))
    throw InputError("{}: an answer may take {} tokens, and {} can be read; give a smaller --answer-tokens", where,
                     room, limit.most());
  truncated = truncated || drop > 0;
  tokens.erase(tokens.begin(), tokens.begin() + drop);
  return tokens;
}

std::vector<std::vector<std::size_t>> batches_of(const std::vector<Index>& lengths, Index tokens) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return lengths[i]; });
  std::vector<std::vector<std::size_t>> batches;
  for (const std::size_t i : order) {
    const Index lanes = batches.empty() ? 0 : static_cast<Index>(batches.back().size());
    if (lanes == 0 || (lanes + 1) * lengths[i] > tokens) batches.emplace_back();
    batches.back().push_back(i);
  }
  return batches;
}

}  // namespace quipu
