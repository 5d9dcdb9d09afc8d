#include "text/corpus_divider.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace quipu {

CorpusDivider::CorpusDivider(std::vector<Share> shares, std::uint64_t total_bytes, Cut cut) : cut_(cut) {
  double sum = 0;
  for (const Share& share : shares) {
    if (!(share.fraction >= 0 && share.fraction <= 1)) {
      throw UsageError("split: a share of {} is outside 0 to 1; give a fraction of the text", share.fraction);
    }
    sum += share.fraction;
    sinks_.push_back(share.sink);
    ends_.push_back(static_cast<std::uint64_t>(std::floor(sum * static_cast<double>(total_bytes))));
  }
  if (shares.empty() || std::abs(sum - 1) > 1e-9) {
    throw UsageError("split: the shares of the text sum to {} instead of 1; give smaller or larger ones", sum);
  }
  ends_.back() = std::numeric_limits<std::uint64_t>::max();
}

std::size_t CorpusDivider::fitting(std::string_view block) {
  while (position_ >= ends_[share_]) {
    if (open_) {
      const bool inside_character = (static_cast<unsigned char>(block[0]) & 0xc0) == 0x80;
      if (cut_ == Cut::kAfter) return block.size();
      if (inside_character && position_ < ends_[share_] + 3) return 1;
      end_document();
    }
    ++share_;
  }
  if (cut_ == Cut::kAfter) return block.size();
  return static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), ends_[share_] - position_));
}

void CorpusDivider::text(std::string_view block) {
  while (!block.empty()) {
    const std::size_t size = fitting(block);
    sinks_[share_]->text(block.substr(0, size));
    open_ = true;
    position_ += size;
    block.remove_prefix(size);
  }
}

void CorpusDivider::end_document() {
  if (open_) sinks_[share_]->end_document();
  open_ = false;
}

}  // namespace quipu
