#include <algorithm>
#include <array>
#include <limits>

#include "text/key_table.h"
#include "text/segmenter.h"
#include "text/word_split.h"

namespace quipu {

namespace {

/// The pieces as a tree over their bytes; edges are in a hash table.
class PieceTree {
 public:
  explicit PieceTree(std::span<const std::string> pieces) {
    std::size_t bytes = 0;
    for (const std::string& piece : pieces) bytes += piece.size();
    edges_ = KeyTable(bytes);
    for (std::size_t id = 0; id < pieces.size(); ++id) insert(pieces[id], static_cast<std::int32_t>(id));
  }

  /// Calls found(length, id) for every piece at the beginning of `text`, shortest first.
  template <typename Found>
  void beginnings(std::string_view text, Found&& found) const {
    std::int32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = edges_.find(edge(node, text[i]));
      if (node == KeyTable::kAbsent) return;
      if (const std::int32_t id = pieces_[static_cast<std::size_t>(node)]; id >= 0) found(i + 1, id);
    }
  }

 private:
  static std::uint64_t edge(std::int32_t node, char c) {
    return static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(c);
  }

  void insert(std::string_view piece, std::int32_t id) {
    std::int32_t node = 0;
    for (const char c : piece) {
      std::int32_t next = edges_.find(edge(node, c));
      if (next == KeyTable::kAbsent) {
        next = static_cast<std::int32_t>(pieces_.size());
        edges_.insert(edge(node, c), next);
        pieces_.push_back(-1);
      }
      node = next;
    }
    pieces_[static_cast<std::size_t>(node)] = id;
  }

  KeyTable edges_;
  std::vector<std::int32_t> pieces_{-1};  // the piece that ends in a node, or -1
};

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
