#include <algorithm>

#include "store/byte_cursor.h"
#include "store/tensor_formats.h"
#include "store/torch_source.h"

namespace quipu {

// What torch.save wrote before version 1.6: five pickles (a magic number, a protocol version, facts about the machine,
// the saved value, the keys of its storages), then for every key a 64-bit count and that many numbers.

namespace {

constexpr std::int64_t kProtocol = 1001;

class LegacyTorchSource final : public TorchSource {
 public:
  explicit LegacyTorchSource(MappedFile mapped)
      : TorchSource(mapped.name(), "PyTorch (legacy)", mapped.size()), file_(std::move(mapped)) {
    next_pickle();  // the magic number, by which the file was recognised
    check_protocol(next_pickle().value);
    check_machine(next_pickle());
    const Pickle content = next_pickle();
    locate_storages(content, next_pickle());
    add_pickle(content, [this](const TorchStorageInfo& info) { return find_storage(info); });
  }

 private:
  struct Located {
    std::string_view key;
    TensorType type;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    bool operator<(const Located& other) const { return key < other.key; }
  };

  /// All pickles of the file share one allowance of memory.
  Pickle next_pickle() {
    Pickle pickle = read_pickle(name(), file_.bytes().subspan(position_), memory_);
    position_ += pickle.bytes;
    memory_ = pickle.memory_left;
    return pickle;
  }

  void check_protocol(const PickleValue& version) const {
    if (version.kind != PickleValue::Kind::kInteger || version.integer != kProtocol) {
      throw InputError("{}: is a PyTorch file of another protocol than {}; save it anew", name(), kProtocol);
    }
  }

  void check_machine(const Pickle& facts) const {
    if (facts.value.kind != PickleValue::Kind::kDict) return;
    const std::vector<PickleValue>& items = facts.items(facts.value);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i].kind == PickleValue::Kind::kText && items[i].view() == "little_endian" &&
          items[i + 1].kind == PickleValue::Kind::kBoolean && items[i + 1].integer == 0) {
        throw InputError(
            "{}: its numbers are stored big-endian, and little-endian ones are read; save it on another "
            "machine",
            name());
      }
    }
  }

  /// Finds where the numbers of every storage stand.
  void locate_storages(const Pickle& content, const Pickle& keys) {
    for (const PickleNode& node : content.nodes) {
      for (const PickleValue& item : node.items) {
        if (item.kind != PickleValue::Kind::kStorage) continue;
        const TorchStorageInfo info = storage_info(content, item);
        spend(3 * sizeof(Located));
        storages_.push_back({info.key, info.type});
      }
    }
    std::ranges::sort(storages_, std::less<>());
    const auto same_key = [](const Located& a, const Located& b) { return a.key == b.key; };
    storages_.erase(std::unique(storages_.begin(), storages_.end(), same_key), storages_.end());
    if (keys.value.kind != PickleValue::Kind::kList) refuse("its list of storages is no list");
    ByteCursor cursor(file_, position_);
    for (const PickleValue& key : keys.items(keys.value)) {
      Located* storage = key.kind == PickleValue::Kind::kText ? find(key.view()) : nullptr;
      if (storage == nullptr || storage->offset != 0) refuse("it lists a storage twice, or one that no tensor uses");
      const auto count = cursor.number<std::uint64_t>("a storage");
      const std::uint64_t width = tensor_block(storage->type).bytes;
      if (count > cursor.left() / width) refuse("a storage ends beyond the end of the file");
      storage->offset = cursor.position();
      storage->bytes = count * width;
      cursor.take(storage->bytes, "a storage");
    }
  }

  void spend(std::uint64_t bytes) {
    if (bytes > memory_) refuse("it has more storages than are in proportion to the file");
    memory_ -= bytes;
  }

  [[noreturn]] void refuse(const char* what) const {
    throw InputError("{}: is cut off or damaged: {}; get the file again", name(), what);
  }

  Located* find(std::string_view key) {
    const auto found = std::ranges::lower_bound(storages_, key, {}, &Located::key);
    return found == storages_.end() || found->key != key ? nullptr : &*found;
  }

  TorchStorage find_storage(const TorchStorageInfo& info) {
    const Located* storage = find(info.key);
    if (storage == nullptr || storage->offset == 0 || storage->type != info.type || storage->bytes < info.bytes()) {
      throw InputError("{}: storage '{}' of {} bytes is missing or too small; get the file again", name(),
                       shown_name(info.key), info.bytes());
    }
    return {file_.bytes().subspan(storage->offset, info.bytes()), nullptr};
  }

  MappedFile file_;
  std::uint64_t memory_ = torch_memory(file_.size());
  std::uint64_t position_ = 0;
  std::vector<Located> storages_;
};

}  // namespace

std::unique_ptr<TensorSource> open_legacy_torch(MappedFile file) {
  return std::make_unique<LegacyTorchSource>(std::move(file));
}

}  // namespace quipu
