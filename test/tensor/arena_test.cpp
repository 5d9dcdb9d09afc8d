#include "tensor/arena.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/rng.h"

namespace quipu {

TEST_CASE("the arena hands out aligned storage that does not overlap, whatever the order of release") {
  const Rng rng(1, 0, 0);
  const std::size_t before = arena::usage().in_use;
  struct Block {
    unsigned char* start;
    std::size_t bytes;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    if (blocks.size() > 50 || (!blocks.empty() && rng.below(3 * i, 2) == 0)) {
      const std::size_t which = rng.below(3 * i + 1, blocks.size());
      const Block block = blocks[which];
      bool intact = true;
      for (std::size_t k = 0; k < block.bytes; ++k) intact = intact && block.start[k] == block.mark;
      REQUIRE(intact);
      arena::release(block.start);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      const std::size_t bytes = rng.below(3 * i + 2, 20000);
      auto* const start = static_cast<unsigned char*>(arena::allocate(bytes));
      REQUIRE(reinterpret_cast<std::uintptr_t>(start) % arena::kAlignment == 0);
      const auto mark = static_cast<unsigned char>(i);
      std::memset(start, mark, bytes);
      blocks.push_back({start, bytes, mark});
    }
  }
  for (const Block& block : blocks) arena::release(block.start);
  CHECK(arena::usage().in_use == before);
}

TEST_CASE("a buffer that grows by copies does not leave all its sizes behind") {
  const std::size_t before = arena::usage().reserved;
  constexpr std::size_t kStep = std::size_t{64} << 20;
  void* kept = arena::allocate(kStep);
  for (std::size_t steps = 2; steps <= 8; ++steps) {
    void* const grown = arena::allocate(steps * kStep);
    CHECK(arena::usage().reserved - before <= (2 * steps - 1) * kStep);
    arena::release(kept);
    kept = grown;
  }
  arena::release(kept);
}

TEST_CASE("released storage is used again, and neighbours join") {
  void* const a = arena::allocate(1 << 20);
  void* const b = arena::allocate(1 << 20);
  const std::size_t reserved = arena::usage().reserved;
  arena::release(a);
  arena::release(b);
  for (int i = 0; i < 200; ++i) arena::release(arena::allocate(2 << 20));
  CHECK(arena::usage().reserved == reserved);
}

TEST_CASE("the high water mark is the largest use since the last reset") {
  arena::reset_high_water();
  const std::size_t before = arena::usage().in_use;
  void* const block = arena::allocate(1 << 20);
  arena::release(block);
  CHECK(arena::usage().in_use == before);
  CHECK(arena::usage().high_water == before + (1 << 20));
  arena::reset_high_water();
  CHECK(arena::usage().high_water == before);
}

TEST_CASE("more than the system has is refused with the sizes, and leaves the arena usable") {
  const std::size_t before = arena::usage().in_use;
  CHECK_THROWS_WITH_AS(arena::allocate(std::size_t{1} << 60), doctest::Contains("1152921504606846976 bytes"),
                       InputError);
  CHECK_THROWS_AS(arena::allocate(SIZE_MAX - 100), InputError);
  CHECK_THROWS_AS(arena::allocate(SIZE_MAX), InputError);
  CHECK(arena::usage().in_use == before);
  void* const block = arena::allocate(100);
  CHECK(block != nullptr);
  arena::release(block);
}

TEST_CASE("threads may allocate at the same time") {
  const std::size_t before = arena::usage().in_use;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (std::size_t i = 0; i < 500; ++i) arena::release(arena::allocate(64 * (i % 37 + 1)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(arena::usage().in_use == before);
}

}  // namespace quipu
