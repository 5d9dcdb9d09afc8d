#include <algorithm>
#include <array>
#include <limits>

#include "text/piece_tree.h"
#include "text/segmenter.h"
#include "text/word_split.h"

namespace quipu {

namespace {

class UnigramSegmenter final : public Segmenter {
 public:
  UnigramSegmenter(std::span<const std::string> pieces, std::span<const float> scores)
      : tree_(pieces), scores_(scores.begin(), scores.end()) {}

  void segment(std::string_view word, std::vector<std::int32_t>& tokens) const override {
    struct Best {
      float score = -std::numeric_limits<float>::infinity();
      std::int32_t id = -1;
      std::size_t length = 0;
    };
    std::array<Best, kMaxWordBytes + 1> best;  // of the first i bytes
    best[0].score = 0;
    for (std::size_t begin = 0; begin < word.size(); ++begin) {
      tree_.beginnings(word.substr(begin), [&](std::size_t length, std::int32_t id) {
        const float score = best[begin].score + scores_[static_cast<std::size_t>(id)];
        Best& here = best[begin + length];
        if (here.id < 0 || score > here.score) here = {score, id, length};
      });
    }
    const auto first = static_cast<std::ptrdiff_t>(tokens.size());
    for (std::size_t end = word.size(); end > 0; end -= best[end].length) tokens.push_back(best[end].id);
    std::reverse(tokens.begin() + first, tokens.end());
  }

 private:
  PieceTree tree_;
  std::vector<float> scores_;
};

}  // namespace

std::unique_ptr<Segmenter> make_unigram_segmenter(std::span<const std::string> pieces, std::span<const float> scores) {
  return std::make_unique<UnigramSegmenter>(pieces, scores);
}

}  // namespace quipu
