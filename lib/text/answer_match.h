#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace quipu {

class Tokenizer;

/// How a completion is compared with answers; of several answers, the best one counts.

/// Runs of blanks as one blank, none at the ends.
std::string squeeze_blanks(std::string_view text);
/// Whether a text comes back from the tokenizer as it was, but for blanks.
bool comes_back(const Tokenizer& tokenizer, const std::string& text);
/// Whether the completion holds an answer, upper and lower case alike (of ASCII). `squeeze`: both with their blanks
/// squeezed.
bool contains_answer(std::string_view completion, const std::vector<std::string>& answers, bool squeeze);
/// SQuAD's normalization: lower case (of ASCII), without ASCII punctuation, without the words a, an, the, blanks
/// squeezed.
std::string normalize_answer(std::string_view text);
/// Equal after normalize_answer (`normalize`), or but for blanks at the ends.
bool exact_match(std::string_view completion, const std::vector<std::string>& answers, bool normalize);
/// F1 of the normalized words, as bags.
double answer_f1(std::string_view completion, const std::vector<std::string>& answers);

}  // namespace quipu
