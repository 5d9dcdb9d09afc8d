#include "profile/verdict.h"

#include <vector>

namespace quipu {

Verdict verdict_of(std::span<const ProfileRow> rows) {
  std::vector<const ProfileRow*> measured;
  for (const ProfileRow& row : rows)
    if (row.measured()) measured.push_back(&row);
  Verdict v;
  if (measured.empty()) return v;
  const ProfileRow &first = *measured.front(), &last = *measured.back();
  v.from = first.length, v.to = last.length;
  v.state_bytes_from = first.state_bytes, v.state_bytes_to = last.state_bytes;
  for (const ProfileRow* row : measured) v.constant_state = v.constant_state && row->state_bytes == first.state_bytes;
  if (v.from == v.to || first.seconds_per_token <= 0) return v;
  v.time_ratio = last.seconds_per_token / first.seconds_per_token;
  v.time = v.time_ratio > kFlat ? Trend::grows : v.time_ratio < 1 / kFlat ? Trend::falls : Trend::flat;
  return v;
}

}  // namespace quipu
