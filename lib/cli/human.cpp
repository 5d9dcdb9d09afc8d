#include "cli/human.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace quipu {
namespace {

/// At most three figures: "1.2", "12", "120", "1".
std::string figures(double value) {
  std::string text = value >= 9.95 ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string scaled(double value, const char* unit) {
  constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  if (!std::isfinite(value)) return "unknown";
  if (value < 0) return fmt::format("-{}", scaled(-value, unit));
  std::size_t step = 0;
  for (; value >= 999.5 && step + 1 < kPrefixes.size(); ++step) value /= 1000;
  const std::string symbol = std::string(kPrefixes[step]) + unit;
  return symbol.empty() ? figures(value) : fmt::format("{} {}", figures(value), symbol);
}

}  // namespace

std::string human_count(double count) { return scaled(count, ""); }

std::string human_bytes(double bytes) { return scaled(bytes, "B"); }

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 0) return fmt::format("-{}", human_duration(-seconds));
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const double whole = std::round(seconds);
  if (whole < 3600) return fmt::format("{:.0f} min {:02.0f} s", std::floor(whole / 60), std::fmod(whole, 60));
  const double minutes = std::round(seconds / 60);
  if (minutes < 1440) return fmt::format("{:.0f} h {:02.0f} min", std::floor(minutes / 60), std::fmod(minutes, 60));
  const double hours = std::round(seconds / 3600);
  return fmt::format("{:.0f} d {:02.0f} h", std::floor(hours / 24), std::fmod(hours, 24));
}

std::string grouped(Index number) {
  std::string text = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

}  // namespace quipu
