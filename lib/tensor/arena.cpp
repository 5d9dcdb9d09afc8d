#include "tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "base/error.h"

namespace quipu::arena {
namespace {

constexpr std::size_t kRegionBytes = std::size_t{4} << 20;
constexpr std::size_t kMostBytes = std::size_t{1} << 62;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct Block {
  std::size_t bytes;
  bool free;
  bool region_start;
};

class Arena {
 public:
  void* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > kMostBytes) refuse(bytes);  // so that no sum below wraps round
    bytes = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    auto found = free_.lower_bound({bytes, nullptr});
    if (found == free_.end()) {
      add_region(bytes);
      found = free_.lower_bound({bytes, nullptr});
    }
    char* const start = found->second;
    const auto block = blocks_.find(start);
    free_.erase(found);
    block->second.free = false;
    if (block->second.bytes > bytes) {
      const std::size_t rest = block->second.bytes - bytes;
      block->second.bytes = bytes;
      blocks_.emplace(start + bytes, Block{rest, true, false});
      free_.emplace(rest, start + bytes);
    }
    usage_.in_use += bytes;
    usage_.high_water = std::max(usage_.high_water, usage_.in_use);
#ifndef NDEBUG
    std::memset(start, 0xff, bytes);
#endif
    return start;
  }

  void release(void* pointer) noexcept {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(static_cast<char*>(pointer));
    usage_.in_use -= block->second.bytes;
    put_back(block);
  }

  Usage usage() {
    const std::lock_guard lock(mutex_);
    return usage_;
  }

  void reset_high_water() {
    const std::lock_guard lock(mutex_);
    usage_.high_water = usage_.in_use;
  }

 private:
  using Place = std::map<char*, Block>::iterator;

  /// Makes a block free, one with its free neighbours in the region.
  void put_back(Place block) {
    if (const auto next = std::next(block); joins(next)) {
      free_.erase({next->second.bytes, next->first});
      block->second.bytes += next->second.bytes;
      blocks_.erase(next);
    }
    if (!block->second.region_start) {
      if (const auto before = std::prev(block); before->second.free) {
        free_.erase({before->second.bytes, before->first});
        before->second.bytes += block->second.bytes;
        blocks_.erase(block);
        block = before;
      }
    }
    block->second.free = true;
    free_.emplace(block->second.bytes, block->first);
  }

  bool joins(Place next) const { return next != blocks_.end() && next->second.free && !next->second.region_start; }

  [[noreturn]] void refuse(std::size_t bytes) const {
    throw InputError("memory: {} bytes more are not to be had ({} are in use); use a smaller model, batch or length",
                     bytes, usage_.in_use);
  }

  /// Gives large regions back of which nothing is in use.
  void drop_free_regions() {
    for (auto block = blocks_.begin(); block != blocks_.end();) {
      const auto next = std::next(block);
      const Block& b = block->second;
      if (b.free && b.region_start && b.bytes > kRegionBytes && (next == blocks_.end() || next->second.region_start)) {
        munmap(block->first, b.bytes);
        usage_.reserved -= b.bytes;
        free_.erase({b.bytes, block->first});
        blocks_.erase(block);
      }
      block = next;
    }
  }

  void add_region(std::size_t bytes) {
    if (bytes > kRegionBytes) drop_free_regions();
    const std::size_t wanted = std::max(kRegionBytes, (bytes + kHugePage - 1) / kHugePage * kHugePage);
    if (wanted == kRegionBytes && lowest_ != nullptr && extend_down()) return;
    void* const memory = map(nullptr, wanted + kHugePage);
    if (memory == MAP_FAILED) refuse(wanted);
    const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(memory) % kHugePage) % kHugePage;
    char* const start = static_cast<char*>(memory) + before;
    if (before > 0) munmap(memory, before);
    if (before < kHugePage) munmap(start + wanted, kHugePage - before);
    take_in(start, wanted);
    if (wanted == kRegionBytes) lowest_ = start;
  }

  /// A region of the usual size right below the last one, where the system has that place, so that what is free at the
  /// border serves as one block.
  bool extend_down() {
    char* const start = lowest_ - kRegionBytes;
    void* const memory = map(start, kRegionBytes);
    if (memory == MAP_FAILED) return false;
    if (memory != start) {
      munmap(memory, kRegionBytes);
      return false;
    }
    if (const auto above = blocks_.find(lowest_); above != blocks_.end()) above->second.region_start = false;
    take_in(start, kRegionBytes);
    lowest_ = start;
    return true;
  }

  static void* map(void* place, std::size_t bytes) {
    return mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }

  void take_in(char* start, std::size_t bytes) {
    madvise(start, bytes, MADV_HUGEPAGE);  // a wish: without huge pages all works, slower
    usage_.reserved += bytes;
    put_back(blocks_.emplace(start, Block{bytes, false, true}).first);
  }

  std::mutex mutex_;
  char* lowest_ = nullptr;                        // the last region of the usual size
  std::map<char*, Block> blocks_;                 // by address
  std::set<std::pair<std::size_t, char*>> free_;  // by size, then address
  Usage usage_{};
};

Arena& instance() {
  static Arena* const arena = new Arena;  // never destroyed: tensors in static objects may outlive it
  return *arena;
}

}  // namespace

void* allocate(std::size_t bytes) { return instance().allocate(bytes); }
void release(void* block) noexcept { instance().release(block); }
Usage usage() { return instance().usage(); }
void reset_high_water() { instance().reset_high_water(); }

}  // namespace quipu::arena
