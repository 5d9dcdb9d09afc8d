#include <algorithm>
#include <map>

#include "store/json_check.h"
#include "store/tensor_formats.h"

namespace quipu {

// The index of a sharded model: {"metadata": {...}, "weight_map": {TENSOR: FILE, ...}}.

namespace {

constexpr std::size_t kMostShards = 4096;

/// The weight map: shards by name, and for every tensor, sorted, the number of its shard.
struct WeightMap {
  std::vector<std::string> shards;
  std::vector<std::pair<std::string, std::uint32_t>> tensors;
};

class IndexEvents final : public JsonCheck {
 public:
  IndexEvents(WeightMap& map, const std::string& where) : JsonCheck(where, "the index"), map_(map) {}

  bool key(string_t& key) override {
    if (depth() == 1) {
      in_map_ = key == "weight_map";
      seen_ = seen_ || in_map_;
    }
    key_ = std::move(key);
    return true;
  }

  bool string(string_t& text) override {
    if (!in_map_) return true;
    if (depth() != 2) unexpected("a text");
    check_shard_name(text);
    const auto [found, fresh] = numbers_.try_emplace(text, static_cast<std::uint32_t>(map_.shards.size()));
    if (fresh) map_.shards.push_back(text);
    if (map_.shards.size() > kMostShards) {
      throw InputError("{}: the index names more than {} files; refused", where(), kMostShards);
    }
    map_.tensors.emplace_back(std::move(key_), found->second);
    return true;
  }

  bool number_unsigned(number_unsigned_t) override { return !in_map_ || unexpected("a number"); }
  bool start_array(std::size_t size) override {
    if (in_map_ || depth() == 0) unexpected("a list");
    return JsonCheck::start_array(size);
  }
  bool start_object(std::size_t size) override {
    if (in_map_ && depth() == 2) unexpected("an object");
    return JsonCheck::start_object(size);
  }
  bool end_object() override {
    JsonCheck::end_object();
    if (depth() == 1) in_map_ = false;
    return true;
  }

  void finish() {
    if (!seen_) throw InputError("{}: is JSON without a \"weight_map\"; give a model's index, file or folder", where());
    std::ranges::sort(map_.tensors);
    const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (const auto twice = std::ranges::adjacent_find(map_.tensors, same_name); twice != map_.tensors.end()) {
      throw InputError("{}: the index has '{}' twice; get the file again", where(), shown_name(twice->first));
    }
  }

 private:
  /// A shard stands beside the index: its name is a file's name and nothing else.
  void check_shard_name(const std::string& shard) const {
    if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos ||
        shard.find('\0') != std::string::npos) {
      throw InputError("{}: the index names the file '{}', which is not beside it; refused", where(),
                       shown_name(shard));
    }
  }

  WeightMap& map_;
  std::map<std::string, std::uint32_t> numbers_;
  bool in_map_ = false;
  bool seen_ = false;
  std::string key_;
};

class ShardedSource final : public TensorSource {
 public:
  ShardedSource(const std::string& index, std::uint64_t bytes, const WeightMap& map,
                std::vector<std::unique_ptr<TensorSource>> shards)
      : TensorSource(index, shards.empty() ? "safetensors" : shards.front()->format(), bytes),
        shards_(std::move(shards)) {
    for (std::uint32_t number = 0; number < shards_.size(); ++number) add_shard(map, number);
    for (const auto& [tensor, number] : map.tensors) {
      if (shards_[number]->find(tensor) == nullptr) {
        throw InputError("{}: tensor '{}' should be in {}, and is not; get both again", name(), shown_name(tensor),
                         shards_[number]->name());
      }
    }
    finish_tensors();
  }

  std::optional<std::span<const std::byte>> stored(const TensorInfo& tensor) const override {
    const TensorSource& shard = shard_of(tensor);
    return shard.stored(shard.tensor(tensor.name));
  }

 private:
  void add_shard(const WeightMap& map, std::uint32_t number) {
    const TensorSource& shard = *shards_[number];
    for (const TensorInfo& tensor : shard.tensors()) {
      const auto found =
          std::ranges::lower_bound(map.tensors, tensor.name, {}, &std::pair<std::string, std::uint32_t>::first);
      if (found == map.tensors.end() || found->first != tensor.name || found->second != number) {
        throw InputError("{}: {} holds tensor '{}', which the index does not place there; get both again", name(),
                         shard.name(), shown_name(tensor.name));
      }
      add_tensor(tensor.name, tensor.type, tensor.shape);
      shard_numbers_.push_back(number);
    }
    for (const auto& [key, value] : shard.metadata().values) {
      if (metadata_.find(key) == nullptr) metadata_.add(key, value);
    }
  }

  const TensorSource& shard_of(const TensorInfo& tensor) const { return *shards_[shard_numbers_[index_of(tensor)]]; }

  void read_values(const TensorInfo& tensor, std::span<float> values) const override {
    const TensorSource& shard = shard_of(tensor);
    shard.read(shard.tensor(tensor.name), values);
  }

  std::vector<std::unique_ptr<TensorSource>> shards_;
  std::deque<std::uint32_t> shard_numbers_;
};

}  // namespace

std::unique_ptr<TensorSource> open_sharded(const MappedFile& index, const std::string& folder,
                                           const OpenShard& open_shard) {
  WeightMap map;
  IndexEvents events(map, index.name());
  events.parse({reinterpret_cast<const char*>(index.bytes().data()), index.bytes().size()});
  events.finish();
  std::vector<std::unique_ptr<TensorSource>> shards;
  std::uint64_t bytes = index.size();
  for (const std::string& shard : map.shards) {
    shards.push_back(open_shard(folder + "/" + shard));
    bytes += shards.back()->file_bytes();
  }
  return std::make_unique<ShardedSource>(index.name(), bytes, map, std::move(shards));
}

}  // namespace quipu
