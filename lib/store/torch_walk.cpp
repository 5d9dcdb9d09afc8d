#include <algorithm>
#include <limits>

#include "store/byte_cursor.h"
#include "store/torch_source.h"

namespace quipu {

namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kLongestPath = 4096;
constexpr std::size_t kLongestText = 4096;
constexpr std::uint64_t kTensorBytes = 256;  // what a tensor's description takes, name aside
constexpr std::uint64_t kFreeMemory = std::uint64_t{1} << 20;

}  // namespace

std::uint64_t torch_memory(std::uint64_t file_bytes) { return 3 * file_bytes + kFreeMemory; }

TorchStorageInfo storage_info(const Pickle& pickle, const PickleValue& value) {
  const std::vector<PickleValue>& items = pickle.items(value);
  return {items[2].view(), items[1].global->type, static_cast<std::uint64_t>(items[4].integer)};
}

/// Goes through what a pickle made, without trusting that it ends: values may contain themselves, or the same part many
/// times over.
class TorchSource::Walk {
 public:
  Walk(TorchSource& source, const Pickle& pickle, const FindStorage& find_storage)
      : source_(source), pickle_(pickle), find_storage_(find_storage), memory_left_(pickle.memory_left) {
    for (const PickleNode& node : pickle.nodes) visits_left_ += 2 * node.items.size();
  }

  void visit(const PickleValue& value, std::size_t depth) {
    if (depth > kDeepest) refuse("is nested more than 64 deep, or contains itself");
    if (visits_left_-- == 0) refuse("contains the same values again and again");
    switch (value.kind) {
      case PickleValue::Kind::kTensor:
        return add_tensor(value);
      case PickleValue::Kind::kDict:
        return visit_dict(pickle_.items(value), depth);
      case PickleValue::Kind::kList:
      case PickleValue::Kind::kTuple:
        return visit_list(pickle_.items(value), depth);
      case PickleValue::Kind::kBoolean:
        return add_metadata(value.integer != 0);
      case PickleValue::Kind::kInteger:
        return add_metadata(value.integer);
      case PickleValue::Kind::kReal:
        return add_metadata(value.real);
      case PickleValue::Kind::kGlobal:
        return add_text(value.global->name);
      case PickleValue::Kind::kText:
        return add_text(value.view());
      default:
        ++source_.metadata_.left_out;
    }
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw InputError("{}: what it holds {}, at '{}'; save only the model's state_dict", source_.name(), what,
                     shown_name(path_));
  }

  void spend(std::uint64_t bytes) {
    if (bytes > memory_left_) refuse("takes more memory than is in proportion to the file");
    memory_left_ -= bytes;
  }

  void visit_dict(const std::vector<PickleValue>& items, std::size_t depth) {
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const PickleValue& key = items[i];
      if (key.kind == PickleValue::Kind::kText) {
        visit_part(key.view(), items[i + 1], depth);
      } else if (key.kind == PickleValue::Kind::kInteger) {
        visit_part(std::to_string(key.integer), items[i + 1], depth);
      } else {
        refuse("has a dictionary with keys other than texts and numbers");
      }
    }
  }

  void visit_list(const std::vector<PickleValue>& items, std::size_t depth) {
    for (std::size_t i = 0; i < items.size(); ++i) visit_part(std::to_string(i), items[i], depth);
  }

  void visit_part(std::string_view key, const PickleValue& value, std::size_t depth) {
    const std::size_t before = path_.size();
    if (key.size() > kLongestPath - before) refuse("has a name of more than 4096 bytes");
    if (depth > 0) path_ += '.';
    path_ += key;
    visit(value, depth + 1);
    path_.resize(before);
  }

  void add_metadata(MetadataValue value) {
    if (source_.metadata_.values.size() < SourceMetadata::kMostValues) spend(path_.size());
    source_.metadata_.add(path_, std::move(value));
  }

  void add_text(std::string_view text) {
    if (text.size() > kLongestText) return static_cast<void>(++source_.metadata_.left_out);
    spend(text.size());
    add_metadata(std::string(text));
  }

  void add_tensor(const PickleValue& value) {
    const std::vector<PickleValue>& items = pickle_.items(value);
    const auto numbers = [&](const PickleValue& tuple) {
      std::vector<std::int64_t> all;
      all.reserve(pickle_.items(tuple).size());
      for (const PickleValue& number : pickle_.items(tuple)) all.push_back(number.integer);
      return all;
    };
    TorchTensor tensor;
    tensor.storage = storage_info(pickle_, items[0]);
    if (tensor.storage.elements > std::numeric_limits<std::uint64_t>::max() / 8) refuse("has a storage beyond 2^61");
    const bool typed =
        items.size() > 6 && items[6].kind == PickleValue::Kind::kGlobal && items[6].global->kind == PickleName::kDtype;
    tensor.type = typed ? items[6].global->type : tensor.storage.type;
    tensor.offset = items[1].integer;
    tensor.shape = numbers(items[2]);
    tensor.strides = numbers(items[3]);
    spend(kTensorBytes + path_.size() + 8 * (tensor.shape.size() + tensor.strides.size()));
    source_.add_window(path_.empty() ? "tensor" : path_, tensor, find_storage_);
  }

  TorchSource& source_;
  const Pickle& pickle_;
  const FindStorage& find_storage_;
  std::uint64_t memory_left_;
  std::uint64_t visits_left_ = 1024;
  std::string path_;
};

void TorchSource::add_pickle(const Pickle& pickle, const FindStorage& find_storage) {
  Walk(*this, pickle, find_storage).visit(pickle.value, 0);
  finish_tensors();
}

}  // namespace quipu
