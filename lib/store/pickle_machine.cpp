#include "store/pickle_machine.h"

#include <algorithm>
#include <cmath>

namespace quipu {

namespace {

/// What a value costs in a vector that doubles as it grows, old and new together; and in one of the right size.
constexpr std::uint64_t kGrownValue = 3 * sizeof(PickleValue);
constexpr std::uint64_t kFixedValue = sizeof(PickleValue);
constexpr std::uint64_t kNodeBytes = sizeof(PickleNode) + 16;
/// Slots of the memo that nothing was kept in.
constexpr std::size_t kMostUnusedSlots = 256;

}  // namespace

void PickleMachine::refuse(const std::string& what) const {
  throw InputError(
      "{}: its pickle {} (at byte {}); nothing of it was run. Save only the model's state_dict, or as "
      "safetensors",
      file_, what, at());
}

void PickleMachine::charge(std::uint64_t bytes) {
  if (bytes > memory_) {
    throw InputError("{}: its pickle would need more memory than is in proportion to the file (at byte {}); refused",
                     file_, at());
  }
  memory_ -= bytes;
}

void PickleMachine::push(PickleValue value) {
  if (stack_.size() == stack_.capacity()) charge(kGrownValue * std::max<std::size_t>(stack_.capacity(), 16));
  if (stack_.empty()) stack_.reserve(16);
  stack_.push_back(value);
}

PickleValue& PickleMachine::top() {
  if (stack_.size() <= floor()) refuse("takes a value from an empty stack");
  return stack_.back();
}

PickleValue PickleMachine::pop() {
  const PickleValue value = top();
  stack_.pop_back();
  return value;
}

PickleMachine::Items PickleMachine::pop_to_mark() {
  if (marks_.empty()) refuse("goes back to a mark that it has not set");
  const auto first = stack_.begin() + marks_.back();
  charge(static_cast<std::uint64_t>(stack_.end() - first) * kFixedValue);
  Items items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

void PickleMachine::push_node(Kind kind, Items items) {
  charge(kNodeBytes);
  PickleValue value;
  value.kind = kind;
  value.node = static_cast<std::uint32_t>(result_.nodes.size());
  result_.nodes.push_back({std::move(items)});
  push(value);
}

PickleValue PickleMachine::pop_container(Kind kind, const char* operation) {
  const PickleValue container = top();
  if (container.kind != kind) refuse(fmt::format("{} something that cannot be changed so", operation));
  return container;
}

void PickleMachine::extend(const PickleValue& container, const Items& items) {
  Items& all = result_.nodes[container.node].items;
  charge(items.size() * kGrownValue);
  all.insert(all.end(), items.begin(), items.end());
}

void PickleMachine::push_integer(std::int64_t number) {
  PickleValue value;
  value.kind = Kind::kInteger;
  value.integer = number;
  push(value);
}

void PickleMachine::push_long(std::uint64_t count) {
  const auto bytes = cursor_.take(count, "a number in a pickle");
  const bool negative = count > 0 && (bytes.back() & std::byte{0x80}) != std::byte{0};
  if (count <= 8) {
    std::uint64_t bits = negative ? ~std::uint64_t{0} : 0;
    std::memcpy(&bits, bytes.data(), count);
    return push_integer(static_cast<std::int64_t>(bits));
  }
  // No size or number of a tensor is as large: the nearest double will do.
  PickleValue value;
  value.kind = Kind::kReal;
  value.real = negative ? -1.0 : 0.0;
  for (std::uint64_t i = count; i-- > 0;) value.real = value.real * 256 + std::to_integer<int>(bytes[i]);
  push(value);
}

void PickleMachine::push_global(std::string_view module, std::string_view name) {
  const PickleGlobal* global = find_pickle_global(module, name);
  if (global == nullptr) refuse(fmt::format("asks for {}.{}", shown_name(module), shown_name(name)));
  PickleValue value;
  value.kind = Kind::kGlobal;
  value.global = global;
  push(value);
}

void PickleMachine::memoize(std::uint64_t slot) {
  if (slot > memo_.size() + kMostUnusedSlots) refuse(fmt::format("keeps a value at {} of {}", slot, memo_.size()));
  const PickleValue value = top();
  if (slot >= memo_.size()) {
    charge((slot + 1 - memo_.size()) * (kGrownValue + 1));
    memo_.resize(slot + 1);
    memo_used_.resize(slot + 1);
  }
  memo_[slot] = value;
  memo_used_[slot] = true;
}

void PickleMachine::load_persistent() {
  PickleValue value = pop();
  if (value.kind != Kind::kTuple) refuse("refers to something outside that is no storage");
  const Items& items = result_.items(value);
  const bool plain = items.size() == 5 || (items.size() == 6 && items[5].kind == Kind::kNone);
  if (!plain || items[0].kind != Kind::kText || items[0].view() != "storage" || items[1].kind != Kind::kGlobal ||
      (items[1].global->kind != PickleName::kStorage && items[1].global->kind != PickleName::kUntypedStorage) ||
      items[2].kind != Kind::kText || items[4].kind != Kind::kInteger || items[4].integer < 0) {
    refuse("refers to something outside that is no storage");
  }
  value.kind = Kind::kStorage;
  push(value);
}

void PickleMachine::reduce() {
  const PickleValue arguments = pop();
  const PickleValue function = pop();
  if (function.kind != Kind::kGlobal || arguments.kind != Kind::kTuple) refuse("calls something that is no function");
  push(call(*function.global, arguments));
}

PickleValue PickleMachine::call(const PickleGlobal& function, const PickleValue& arguments) {
  const Items& items = result_.items(arguments);
  switch (function.kind) {
    case PickleName::kRebuildTensor:
    case PickleName::kRebuildTyped:
      return make_tensor(function, arguments);
    case PickleName::kRebuildParameter:
    case PickleName::kParameter:
      if (!items.empty() && items[0].kind == Kind::kTensor) return items[0];
      break;
    case PickleName::kOrderedDict:
      return make_dict(items);
    case PickleName::kSize:
      if (items.size() == 1 && items[0].kind == Kind::kTuple) return items[0];
      break;
    case PickleName::kSet:
      if (items.size() == 1 && items[0].kind == Kind::kList) return items[0];
      break;
    case PickleName::kDevice:
    case PickleName::kEncode:
      if (!items.empty() && items[0].kind == Kind::kText) return items[0];
      break;
    default:
      break;
  }
  refuse(fmt::format("calls {} with {} arguments that it does not take", function.name, items.size()));
}

PickleValue PickleMachine::make_tensor(const PickleGlobal& function, PickleValue arguments) {
  const Items& items = result_.items(arguments);
  const bool typed = function.kind == PickleName::kRebuildTyped;
  const auto whole = [&](const PickleValue& tuple) {
    return tuple.kind == Kind::kTuple && std::ranges::all_of(result_.items(tuple), [](const PickleValue& size) {
             return size.kind == Kind::kInteger;
           });
  };
  if (items.size() < (typed ? 7U : 4U) || items[0].kind != Kind::kStorage || items[1].kind != Kind::kInteger ||
      !whole(items[2]) || !whole(items[3]) ||
      (typed && (items[6].kind != Kind::kGlobal || items[6].global->kind != PickleName::kDtype))) {
    refuse(fmt::format("calls {} with other arguments than a storage, an offset, sizes and strides", function.name));
  }
  arguments.kind = Kind::kTensor;
  return arguments;
}

PickleValue PickleMachine::make_dict(const Items& arguments) {
  Items pairs;
  if (!arguments.empty()) {
    if (arguments.size() != 1 || arguments[0].kind != Kind::kList) refuse("makes an OrderedDict of no list of pairs");
    for (const PickleValue& pair : result_.items(arguments[0])) {
      if ((pair.kind != Kind::kTuple && pair.kind != Kind::kList) || result_.items(pair).size() != 2) {
        refuse("makes an OrderedDict of no list of pairs");
      }
      charge(2 * kGrownValue);
      pairs.insert(pairs.end(), result_.items(pair).begin(), result_.items(pair).end());
    }
  }
  push_node(Kind::kDict, std::move(pairs));
  return pop();
}

/// The attributes of an OrderedDict (a state_dict's `_metadata`) are of no use here; nothing else may have any.
void PickleMachine::build() {
  pop();
  if (top().kind != Kind::kDict) refuse("sets attributes of something other than a dictionary");
}

}  // namespace quipu
