#include "store/pickle.h"

#include <bit>
#include <cmath>
#include <limits>

#include "store/pickle_machine.h"

namespace quipu {

namespace {

/// The codes of the operations that torch.save writes, and their later forms.
/// https://docs.python.org/3/library/pickletools
enum Code : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kProto = 0x80,
  kFrame = 0x95,
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinString = 'T',
  kShortBinString = 'U',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinBytes8 = 0x8e,
  kByteArray8 = 0x96,
  kEmptyList = ']',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kEmptySet = 0x8f,
  kAppend = 'a',
  kAppends = 'e',
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kSetItem = 's',
  kSetItems = 'u',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kReduce = 'R',
  kNewObj = 0x81,
  kBuild = 'b',
  kBinPersId = 'Q',
  kInst = 'i',
};

constexpr std::uint8_t kNewestProtocol = 5;

}  // namespace

Pickle read_pickle(const std::string& file, std::span<const std::byte> bytes, std::uint64_t memory) {
  return PickleMachine(file, bytes, memory).run();
}

Pickle PickleMachine::run() {
  while (step()) {
  }
  if (stack_.size() != 1 || !marks_.empty()) refuse(fmt::format("ends with {} values instead of one", stack_.size()));
  result_.value = stack_.front();
  result_.bytes = at();
  result_.memory_left = memory_;
  return std::move(result_);
}

bool PickleMachine::step() {
  const auto code = cursor_.number<std::uint8_t>("a pickle");
  if (code == kStop) return false;
  if (code == kMark) {
    charge(3 * sizeof(std::uint32_t));
    marks_.push_back(static_cast<std::uint32_t>(stack_.size()));
  } else if (code == kProto) {
    const auto version = cursor_.number<std::uint8_t>("a pickle");
    if (version < 2 || version > kNewestProtocol) {
      refuse(fmt::format("is of protocol {}, and 2 to {} are read", version, kNewestProtocol));
    }
  } else if (code == kFrame) {
    cursor_.take(8, "a pickle");
  } else if (!push_constant(code) && !push_text(code) && !make_container(code) && !use_memo(code) &&
             !handle_object(code)) {
    refuse(fmt::format("has the operation {:#04x}, which torch.save does not write", code));
  }
  return true;
}

bool PickleMachine::push_constant(std::uint8_t code) {
  PickleValue value;
  switch (code) {
    case kNone:
      push(value);
      return true;
    case kNewTrue:
    case kNewFalse:
      value.kind = Kind::kBoolean;
      value.integer = code == kNewTrue ? 1 : 0;
      push(value);
      return true;
    case kBinInt:
      push_integer(cursor_.number<std::int32_t>("a pickle"));
      return true;
    case kBinInt1:
      push_integer(cursor_.number<std::uint8_t>("a pickle"));
      return true;
    case kBinInt2:
      push_integer(cursor_.number<std::uint16_t>("a pickle"));
      return true;
    case kLong1:
      push_long(cursor_.number<std::uint8_t>("a pickle"));
      return true;
    case kLong4:
      push_long(cursor_.number<std::uint32_t>("a pickle"));
      return true;
    case kBinFloat: {
      std::uint64_t bits = 0;  // big-endian, other than all the rest
      for (int i = 0; i < 8; ++i) bits = bits << 8 | cursor_.number<std::uint8_t>("a pickle");
      value.kind = Kind::kReal;
      value.real = std::bit_cast<double>(bits);
      push(value);
      return true;
    }
    default:
      return false;
  }
}

bool PickleMachine::push_text(std::uint8_t code) {
  std::uint64_t length = 0;
  switch (code) {
    case kShortBinUnicode:
    case kShortBinString:
    case kShortBinBytes:
      length = cursor_.number<std::uint8_t>("a pickle");
      break;
    case kBinUnicode:
    case kBinString:
    case kBinBytes:
      length = cursor_.number<std::uint32_t>("a pickle");
      break;
    case kBinUnicode8:
    case kBinBytes8:
    case kByteArray8:
      length = cursor_.number<std::uint64_t>("a pickle");
      break;
    default:
      return false;
  }
  const std::string_view text = cursor_.text(length, "a text in a pickle");
  if (length > std::numeric_limits<std::uint32_t>::max()) refuse("has a text of more than 4 GiB");
  PickleValue value;
  const bool bytes = code == kShortBinBytes || code == kBinBytes || code == kBinBytes8 || code == kByteArray8;
  value.kind = bytes ? Kind::kBytes : Kind::kText;
  value.length = static_cast<std::uint32_t>(length);
  value.text = text.data();
  push(value);
  return true;
}

bool PickleMachine::make_container(std::uint8_t code) {
  switch (code) {
    case kEmptyList:
    case kEmptySet:
      push_node(Kind::kList, {});
      return true;
    case kEmptyTuple:
      push_node(Kind::kTuple, {});
      return true;
    case kEmptyDict:
      push_node(Kind::kDict, {});
      return true;
    case kFrozenSet:
      push_node(Kind::kList, pop_to_mark());
      return true;
    case kTuple:
      push_node(Kind::kTuple, pop_to_mark());
      return true;
    case kTuple1:
    case kTuple2:
    case kTuple3: {
      Items items(code - kTuple1 + std::size_t{1});
      for (std::size_t i = items.size(); i-- > 0;) items[i] = pop();
      push_node(Kind::kTuple, std::move(items));
      return true;
    }
    case kAppend: {
      const PickleValue item = pop();
      extend(pop_container(Kind::kList, "appends to"), {item});
      return true;
    }
    case kAppends:
    case kAddItems: {
      const Items items = pop_to_mark();
      extend(pop_container(Kind::kList, "appends to"), items);
      refund(items);
      return true;
    }
    case kSetItem: {
      const PickleValue value = pop();
      const PickleValue key = pop();
      extend(pop_container(Kind::kDict, "sets a key of"), {key, value});
      return true;
    }
    case kSetItems: {
      const Items items = pop_to_mark();
      if (items.size() % 2 != 0) refuse("sets a key without a value");
      extend(pop_container(Kind::kDict, "sets a key of"), items);
      refund(items);
      return true;
    }
    default:
      return false;
  }
}

bool PickleMachine::use_memo(std::uint8_t code) {
  switch (code) {
    case kBinPut:
      memoize(cursor_.number<std::uint8_t>("a pickle"));
      return true;
    case kLongBinPut:
      memoize(cursor_.number<std::uint32_t>("a pickle"));
      return true;
    case kMemoize:
      memoize(memo_.size());
      return true;
    case kBinGet:
    case kLongBinGet: {
      const std::uint32_t slot =
          code == kBinGet ? cursor_.number<std::uint8_t>("a pickle") : cursor_.number<std::uint32_t>("a pickle");
      if (slot >= memo_.size() || !memo_used_[slot]) refuse(fmt::format("recalls value {} before it is kept", slot));
      push(memo_[slot]);
      return true;
    }
    default:
      return false;
  }
}

bool PickleMachine::handle_object(std::uint8_t code) {
  switch (code) {
    case kPop:
      if (stack_.size() == floor() && !marks_.empty()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    case kPopMark:
      pop_to_mark();
      return true;
    case kDup:
      push(PickleValue(top()));
      return true;
    case kGlobal:
    case kInst: {
      const auto line = [this] {
        const std::uint64_t start = at();
        while (cursor_.number<std::uint8_t>("a name in a pickle") != '\n') {
        }
        return cursor_.behind(start).substr(0, at() - start - 1);
      };
      const std::string_view module = line();
      push_global(module, line());
      if (code == kInst) refuse("makes an object in a way that torch.save does not use");
      return true;
    }
    case kStackGlobal: {
      const PickleValue name = pop();
      const PickleValue module = pop();
      if (name.kind != Kind::kText || module.kind != Kind::kText) refuse("asks for a name that is no text");
      push_global(module.view(), name.view());
      return true;
    }
    case kReduce:
    case kNewObj:
      reduce();
      return true;
    case kBuild:
      build();
      return true;
    case kBinPersId:
      load_persistent();
      return true;
    default:
      return false;
  }
}

}  // namespace quipu
