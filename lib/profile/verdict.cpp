#include "profile/verdict.h"

#include <vector>

namespace quipu {
namespace {

/// "1,234,567".
std::string grouped_digits(Index number) {
  std::string text = fmt::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

/// Two digits behind the point below ten, none above.
std::string ratio_text(double ratio) {
  return ratio < 9.995 ? fmt::format("x{:.2f}", ratio) : fmt::format("x{:.0f}", ratio);
}

}  // namespace

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

std::string state_verdict(const Verdict& v) {
  if (v.from == 0) return "state: not measured";
  if (v.from == v.to)
    return fmt::format("state: {} bytes at {}", grouped_digits(v.state_bytes_from), grouped_digits(v.from));
  if (v.constant_state) return fmt::format("state constant: yes ({} bytes)", grouped_digits(v.state_bytes_from));
  return fmt::format("state constant: no ({} bytes at {}, {} at {})", grouped_digits(v.state_bytes_from),
                     grouped_digits(v.from), grouped_digits(v.state_bytes_to), grouped_digits(v.to));
}

std::string time_verdict(const Verdict& v) {
  const std::string span = fmt::format("from {} to {}", grouped_digits(v.from), grouped_digits(v.to));
  const std::string ratio = ratio_text(v.time_ratio);
  if (v.from == 0) return "time per token: not measured";
  switch (v.time) {
    case Trend::one_length:
      return fmt::format("time per token: measured at {} alone", grouped_digits(v.from));
    case Trend::flat:
      return fmt::format("time per token: flat {} ({})", span, ratio);
    case Trend::grows:
      return fmt::format("time per token: grows with length ({} {})", ratio, span);
    case Trend::falls:
      return fmt::format("time per token: falls with length ({} {})", ratio, span);
  }
  return "";
}

}  // namespace quipu
