#include "text/pre_tokenizer.h"

#include <algorithm>
#include <utility>

namespace quipu {

PreTokenizer::PreTokenizer(std::vector<std::string> patterns) : sources_(std::move(patterns)) {
  for (const std::string& source : sources_) patterns_.emplace_back(std::string_view(source));
  cuts_before_blanks_ = std::ranges::all_of(patterns_, &Pattern::keeps_blanks_apart) &&
                        std::ranges::any_of(patterns_, &Pattern::takes_any_space);
}

}  // namespace quipu
