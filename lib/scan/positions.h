#pragma once
#include <cstdint>
#include <vector>

#include "scan/layout.h"

namespace quipu {

/// Of every token of a batch [B,T], how many of its document stand before it. `before`: of each lane, the tokens that
/// its open document already had. 0 on padding.
std::vector<std::int64_t> token_positions(const Layout& layout, const std::vector<std::int64_t>& before);

/// `position`, of each lane the tokens of its open document, brought behind the batch.
void advance_positions(const Layout& layout, std::vector<std::int64_t>& position);

/// Throws InputError where a token of the batch stands at `length` or later in its document: `what` has a fixed length.
void require_within(const char* what, const std::vector<std::int64_t>& positions, Index length);

}  // namespace quipu
