#pragma once
#if defined(__SSE2__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace quipu {

/// While one lives, its thread takes numbers below the smallest normal one (1e-38 in float) for 0. What fades away by
/// strong decays passes through them, and many CPUs are a hundred times slower there. Where there is no such mode
/// nothing changes.
class FlushDenormals {
 public:
  FlushDenormals() : saved_(mode()) { set_mode(saved_ | kFlush); }
  ~FlushDenormals() { set_mode(saved_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__SSE2__)
  using Mode = unsigned;
  static constexpr Mode kFlush = 0x8040;  // results, and operands
  static Mode mode() { return _mm_getcsr(); }
  static void set_mode(Mode mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
  using Mode = std::uint64_t;
  static constexpr Mode kFlush = Mode{1} << 24;
  static Mode mode() {
    Mode mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set_mode(Mode mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  using Mode = unsigned;
  static constexpr Mode kFlush = 0;
  static Mode mode() { return 0; }
  static void set_mode(Mode) {}
#endif

  Mode saved_;
};

}  // namespace quipu
