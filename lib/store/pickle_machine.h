#pragma once
#include <string>
#include <vector>

#include "store/byte_cursor.h"
#include "store/pickle.h"

namespace quipu {

/// The stack machine behind `read_pickle`: one operation after another, on values that are data only.
class PickleMachine {
 public:
  PickleMachine(const std::string& file, std::span<const std::byte> bytes, std::uint64_t memory)
      : file_(file), cursor_(file, bytes), memory_(memory) {}

  Pickle run();

 private:
  using Kind = PickleValue::Kind;
  using Items = std::vector<PickleValue>;

  /// Runs one operation; false for STOP.
  bool step();
  bool push_constant(std::uint8_t code);
  bool push_text(std::uint8_t code);
  bool make_container(std::uint8_t code);
  bool use_memo(std::uint8_t code);
  bool handle_object(std::uint8_t code);

  void push(PickleValue value);
  PickleValue pop();
  PickleValue& top();
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  /// The values above the last mark, which goes.
  Items pop_to_mark();

  void push_node(Kind kind, Items items);
  PickleValue pop_container(Kind kind, const char* operation);
  void extend(const PickleValue& container, const Items& items);

  void push_integer(std::int64_t value);
  void push_long(std::uint64_t bytes);
  void push_global(std::string_view module, std::string_view name);
  void memoize(std::uint64_t slot);
  void load_persistent();
  void reduce();
  void build();

  PickleValue call(const PickleGlobal& function, const PickleValue& arguments);
  PickleValue make_tensor(const PickleGlobal& function, PickleValue arguments);
  PickleValue make_dict(const Items& arguments);

  /// Counts memory before it is taken.
  void charge(std::uint64_t bytes);
  /// Values of `pop_to_mark` that are not kept.
  void refund(const Items& items) { memory_ += items.size() * sizeof(PickleValue); }
  [[noreturn]] void refuse(const std::string& what) const;
  std::uint64_t at() const { return cursor_.position(); }

  const std::string& file_;
  ByteCursor cursor_;
  std::uint64_t memory_;
  std::vector<PickleValue> stack_;
  std::vector<std::uint32_t> marks_;
  std::vector<PickleValue> memo_;
  std::vector<bool> memo_used_;
  Pickle result_;
};

}  // namespace quipu
