#include <algorithm>

#include "store/pickle.h"

namespace quipu {

namespace {

struct Named {
  std::string_view module;
  PickleGlobal global;
};

constexpr Named kNames[] = {
    {"torch._utils", {"_rebuild_tensor_v2", PickleName::kRebuildTensor}},
    {"torch._utils", {"_rebuild_tensor_v3", PickleName::kRebuildTyped}},
    {"torch._utils", {"_rebuild_parameter", PickleName::kRebuildParameter}},
    {"torch._utils", {"_rebuild_parameter_with_state", PickleName::kRebuildParameter}},
    {"torch.nn.parameter", {"Parameter", PickleName::kParameter}},
    {"torch.nn", {"Parameter", PickleName::kParameter}},
    {"collections", {"OrderedDict", PickleName::kOrderedDict}},
    {"torch", {"Size", PickleName::kSize}},
    {"torch", {"device", PickleName::kDevice}},
    {"_codecs", {"encode", PickleName::kEncode}},
    {"__builtin__", {"set", PickleName::kSet}},
    {"builtins", {"set", PickleName::kSet}},
    {"__builtin__", {"frozenset", PickleName::kSet}},
    {"builtins", {"frozenset", PickleName::kSet}},
    {"torch", {"DoubleStorage", PickleName::kStorage, TensorType::kF64}},
    {"torch", {"FloatStorage", PickleName::kStorage, TensorType::kF32}},
    {"torch", {"HalfStorage", PickleName::kStorage, TensorType::kF16}},
    {"torch", {"BFloat16Storage", PickleName::kStorage, TensorType::kBF16}},
    {"torch", {"LongStorage", PickleName::kStorage, TensorType::kI64}},
    {"torch", {"IntStorage", PickleName::kStorage, TensorType::kI32}},
    {"torch", {"ShortStorage", PickleName::kStorage, TensorType::kI16}},
    {"torch", {"CharStorage", PickleName::kStorage, TensorType::kI8}},
    {"torch", {"ByteStorage", PickleName::kStorage, TensorType::kU8}},
    {"torch", {"BoolStorage", PickleName::kStorage, TensorType::kBool}},
    {"torch", {"UntypedStorage", PickleName::kUntypedStorage}},
    {"torch.storage", {"UntypedStorage", PickleName::kUntypedStorage}},
    {"torch.storage", {"_UntypedStorage", PickleName::kUntypedStorage}},
    {"torch", {"float64", PickleName::kDtype, TensorType::kF64}},
    {"torch", {"float32", PickleName::kDtype, TensorType::kF32}},
    {"torch", {"float16", PickleName::kDtype, TensorType::kF16}},
    {"torch", {"bfloat16", PickleName::kDtype, TensorType::kBF16}},
    {"torch", {"int64", PickleName::kDtype, TensorType::kI64}},
    {"torch", {"int32", PickleName::kDtype, TensorType::kI32}},
    {"torch", {"int16", PickleName::kDtype, TensorType::kI16}},
    {"torch", {"int8", PickleName::kDtype, TensorType::kI8}},
    {"torch", {"uint64", PickleName::kDtype, TensorType::kU64}},
    {"torch", {"uint32", PickleName::kDtype, TensorType::kU32}},
    {"torch", {"uint16", PickleName::kDtype, TensorType::kU16}},
    {"torch", {"uint8", PickleName::kDtype, TensorType::kU8}},
    {"torch", {"bool", PickleName::kDtype, TensorType::kBool}},
};

}  // namespace

const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name) {
  const auto* found = std::ranges::find_if(
      kNames, [&](const Named& named) { return named.module == module && named.global.name == name; });
  return found == std::end(kNames) ? nullptr : &found->global;
}

}  // namespace quipu
