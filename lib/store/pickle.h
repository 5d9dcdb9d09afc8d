#pragma once
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/tensor_type.h"

namespace quipu {

/// The names that a pickle of tensors may ask for. Nothing is looked up or called: these are all that there is.
enum class PickleName : std::uint8_t {
  kRebuildTensor,     // torch._utils._rebuild_tensor_v2(storage, offset, sizes, strides, ...)
  kRebuildTyped,      // torch._utils._rebuild_tensor_v3(the same, ..., dtype, ...)
  kRebuildParameter,  // torch._utils._rebuild_parameter(tensor, ...)
  kParameter,         // torch.nn.parameter.Parameter(tensor, ...)
  kOrderedDict,       // collections.OrderedDict
  kSize,              // torch.Size(tuple)
  kDevice,            // torch.device(text, ...)
  kEncode,            // _codecs.encode(text, "latin1"): bytes
  kSet,               // set(list), frozenset(list)
  kStorage,           // torch.FloatStorage, ...: `type` says which
  kUntypedStorage,    // torch.storage.UntypedStorage: bytes
  kDtype,             // torch.float32, ...
};

struct PickleGlobal {
  std::string_view name;  // "torch.FloatStorage"
  PickleName kind;
  TensorType type = TensorType::kU8;
};

/// The global of a module and a name, or nullptr where it is none of those above.
const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name);

/// A value that a pickle made. Text stays in the pickle's bytes; what has parts is a node of the result.
struct PickleValue {
  enum class Kind : std::uint8_t {
    kNone,
    kBoolean,
    kInteger,
    kReal,
    kText,
    kBytes,
    kGlobal,
    // Nodes:
    kTuple,
    kList,
    kDict,     // key, value, key, value, ...
    kStorage,  // ("storage", type, key, place, elements)
    kTensor,   // (storage, offset, sizes, strides, ...)
  };
  Kind kind = Kind::kNone;
  std::uint32_t length = 0;  // of a text
  union {
    std::int64_t integer = 0;  // kInteger, kBoolean
    double real;
    const char* text;
    const PickleGlobal* global;
    std::uint32_t node;
  };

  std::string_view view() const { return {text, length}; }
};

struct PickleNode {
  std::vector<PickleValue> items;
};

/// What a pickle holds.
struct Pickle {
  PickleValue value;
  std::deque<PickleNode> nodes;
  std::uint64_t bytes = 0;        // that the pickle had, its STOP included
  std::uint64_t memory_left = 0;  // of the memory allowed

  const std::vector<PickleValue>& items(const PickleValue& of) const { return nodes[of.node].items; }
};

/// Reads the pickle at the start of `bytes` as data: the operations that torch.save writes (protocol 2 to 5) and the
/// names of PickleName; every other operation or name is refused as an InputError that names it. Nothing is imported
/// and nothing runs. Holds at most `memory` bytes; recursion is not used, and values may refer to themselves. `file` is
/// for messages; the texts in the result point into `bytes`.
Pickle read_pickle(const std::string& file, std::span<const std::byte> bytes, std::uint64_t memory);

}  // namespace quipu
