#include "text/token_matcher.h"

#include "base/error.h"
#include "text/escape.h"

namespace quipu {

TokenMatcher::TokenMatcher(std::span<const Token> tokens) : empty_(tokens.empty()) {
  std::size_t bytes = 0;
  for (const Token& token : tokens) bytes += token.bytes.size();
  tree_ = PieceTree(bytes);
  for (const Token& token : tokens) {
    const auto first = static_cast<unsigned char>(token.bytes[0]);
    first_[first] = true;
    if (token.bytes.size() == 1) alone_[first] = true;
    if (token.bytes.size() > 1) heads_.insert(token.bytes[0], token.bytes[1]);
    pairs_.insert_all(token.bytes);
    if (!tree_.insert(token.bytes, token.id)) {
      throw InputError("token {}: '{}' is there twice; give each token once", token.id, escape_text(token.bytes));
    }
  }
}

TokenMatcher::Found TokenMatcher::find(std::string_view text, std::size_t from, bool open) const {
  if (empty_) return {};
  for (std::size_t at = from; at < text.size(); ++at) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (!first_[first]) continue;
    const bool last = at + 1 == text.size();
    if (!alone_[first] && (last ? !open : !heads_.contains(text[at], text[at + 1]))) continue;
    Found found{Found::Kind::kNone, at, 0, -1};
    const bool undecided = tree_.longest_path(text.substr(at), [&](std::size_t length, std::int32_t id) {
      found.kind = Found::Kind::kToken;
      found.end = at + length;
      found.id = id;
    });
    if (undecided && open) return {Found::Kind::kOpen, at, 0, -1};
    if (found.kind == Found::Kind::kToken) return found;
  }
  return {};
}

}  // namespace quipu
