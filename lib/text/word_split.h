#pragma once
#include <cstddef>
#include <string_view>

namespace quipu {

/// The longest word of split_word, in bytes.
inline constexpr std::size_t kMaxWordBytes = 256;

/// Where the word that begins at text[at] (at < text.size()) ends. Subword pieces never cross the end of a word, so the
/// words decide what a piece can be. They tile the text; each is the longest of
///  - letters, with one space before them where there is one: ` word`. Every byte above 127 is a letter but for the
///    punctuation of U+0080..U+00BF, U+2000..U+207F and U+3000..U+303F, which is punctuation. An apostrophe (' or
///    U+2019) between two letters belongs to the word: ` don't`;
///  - 1 to 3 digits, with one space before them where there is one;
///  - punctuation and control bytes, with one space before them where there is one;
///  - blanks; a space before something that is no blank goes with what follows.
/// A longer word is cut after kMaxWordBytes bytes.
///
/// Returns 0 where the text is not `complete` and what follows could change the answer.
std::size_t split_word(std::string_view text, std::size_t at, bool complete);

/// The first position >= `from` (from >= 1) between something and a blank after it, where words always end; or
/// text.size().
std::size_t word_cut_after(std::string_view text, std::size_t from);

}  // namespace quipu
