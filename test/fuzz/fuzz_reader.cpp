#include "fuzz/fuzz_reader.h"

#include <sanitizer/allocator_interface.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace quipu_fuzz {

namespace {

constexpr std::size_t kMostNumbers = std::size_t{1} << 20;

/// The memory that the run holds now, while it is counted, and the most that it may hold.
thread_local bool counting = false;
thread_local std::size_t held = 0;
thread_local std::size_t most = 0;

void broken(const char* rule) {
  std::fprintf(stderr, "broken rule: %s\n", rule);
  std::abort();
}

void on_malloc(const volatile void*, std::size_t size) {
  if (!counting) return;
  held += size;
  if (held <= most) return;
  counting = false;
  broken("memory beyond four times the file");
}

void on_free(const volatile void* pointer) {
  if (!counting || pointer == nullptr) return;
  const std::size_t size = __sanitizer_get_allocated_size(const_cast<const void*>(pointer));
  held -= size < held ? size : held;
}

const bool kHooked = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) != 0;

}  // namespace

void check_reader(std::span<const std::byte> bytes, const std::function<void(quipu::MappedFile)>& read) {
  if (!kHooked) broken("memory cannot be counted");
  held = 0;
  most = 4 * bytes.size() + kFreeMemory;
  counting = true;
  try {
    read(quipu::MappedFile::borrow("f", bytes));
  } catch (const quipu::InputError& error) {
    const std::string_view text = error.what();
    if (!text.starts_with("f: ") || text.find('\n') != std::string_view::npos) broken("a message of one line");
  }
  counting = false;
}

void read_everything(const quipu::TensorSource& source) {
  counting = false;
  static std::vector<float> numbers(kMostNumbers);
  counting = true;
  std::size_t left = kMostNumbers;
  for (const quipu::TensorInfo& tensor : source.tensors()) {
    if (tensor.elements() > left) continue;
    left -= tensor.elements();
    source.read(tensor, std::span(numbers).first(tensor.elements()));
    if (const auto stored = source.stored(tensor); stored && stored->size() != tensor.bytes()) broken("stored bytes");
  }
  counting = false;
  for (const auto& [key, value] : source.metadata().values) {
    const auto* array = std::get_if<quipu::MetadataArray>(&value);
    if (array == nullptr) continue;
    const bool texts = array->element() == quipu::MetadataArray::Element::kString;
    if ((texts ? array->strings().size() : array->numbers().size()) != array->size()) broken("a list's length");
  }
  counting = true;
}

}  // namespace quipu_fuzz
