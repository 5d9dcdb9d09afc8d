#include "store/pickle.h"

#include <doctest/doctest.h>

#include "store/foreign_bytes.h"

using namespace quipu;
using quipu_test::bytes_of;

namespace {

constexpr std::uint64_t kMemory = 1 << 20;

Pickle read(const std::string& bytes, std::uint64_t memory = kMemory) {
  return read_pickle("f", std::as_bytes(std::span(bytes)), memory);
}

/// What is said of a pickle that must be refused; "" where it is not.
std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool refuses(const std::string& bytes, std::string_view because) {
  return refusal(bytes).find(because) != std::string::npos;
}

const std::string kProtocol2("\x80\x02", 2);

}  // namespace

TEST_CASE("pickle: values, lists and dictionaries") {
  // {"a": [1, -2, 2.5, None, True], "b": ("a", 300)}, the key of "b"'s text recalled from the memo.
  const std::string bytes = kProtocol2 + "}q" + std::string(1, '\0') + "(X\x01" + std::string(3, '\0') +
                            "aq\x01](K\x01J" + bytes_of(std::int32_t{-2}) + "G\x40\x04" + std::string(6, '\0') +
                            "N\x88" + "eX\x01" + std::string(3, '\0') + "bh\x01M" + bytes_of(std::uint16_t{300}) +
                            "\x86u.rest";
  const Pickle pickle = read(bytes);
  CHECK(pickle.bytes == bytes.size() - 4);
  REQUIRE(pickle.value.kind == PickleValue::Kind::kDict);
  const auto& items = pickle.items(pickle.value);
  REQUIRE(items.size() == 4);
  CHECK(items[0].view() == "a");
  const auto& list = pickle.items(items[1]);
  REQUIRE(list.size() == 5);
  CHECK(list[0].integer == 1);
  CHECK(list[1].integer == -2);
  CHECK(list[2].real == 2.5);
  CHECK(list[3].kind == PickleValue::Kind::kNone);
  CHECK(list[4].kind == PickleValue::Kind::kBoolean);
  const auto& tuple = pickle.items(items[3]);
  CHECK(tuple[0].view() == "a");
  CHECK(tuple[1].integer == 300);
}

TEST_CASE("pickle: long numbers") {
  CHECK(read(kProtocol2 + "\x8a" + std::string(1, '\0') + ".").value.integer == 0);
  CHECK(read(kProtocol2 + "\x8a\x01\xff.").value.integer == -1);
  CHECK(read(kProtocol2 + "\x8a\x02" + bytes_of(std::int16_t{-32768}) + ".").value.integer == -32768);
  const Pickle big = read(kProtocol2 + "\x8a\x09" + std::string(8, '\0') + "\x01.");
  CHECK(big.value.kind == PickleValue::Kind::kReal);
  CHECK(big.value.real == 0x1p64);
}

TEST_CASE("pickle: what would run code is refused by name") {
  // cposix\nsystem\n(S'...' and its kin.
  CHECK(refuses("cposix\nsystem\nX\x02" + std::string(3, '\0') + "id\x85R.", "posix.system"));
  CHECK(refuses(kProtocol2 + "cos\nsystem\n(X\x02" + std::string(3, '\0') + "idtR.", "os.system"));
  CHECK(refuses(kProtocol2 + "c__builtin__\neval\n.", "__builtin__.eval"));
  CHECK(refuses(kProtocol2 + "cbuiltins\ngetattr\n.", "builtins.getattr"));
  CHECK(refuses(kProtocol2 + "cnumpy.core.multiarray\n_reconstruct\n.", "numpy.core.multiarray._reconstruct"));
  CHECK(refuses(kProtocol2 + "ctorch\nload\n.", "torch.load"));
  CHECK(refuses(kProtocol2 + "(ios\nsystem\n.", "os.system"));
  CHECK(refuses("\x80\x04\x8c\x05posix\x8c\x06system\x93.", "posix.system"));
  CHECK(refuses("\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x85R.", "posix.system"));
  CHECK(refuses(kProtocol2 + "c\x1b[31m\nx\\y\n.", "\\x1b[31m.x\\\\y"));
  CHECK(refuses(kProtocol2 + "\x82\x01.", "operation 0x82"));
  CHECK(refuses(kProtocol2 + "Pid\n.", "operation 0x50"));
  CHECK(refuses(kProtocol2 + "(o.", "operation 0x6f"));
  CHECK(refuses(std::string("\x80\x00N.", 4), "protocol 0"));
}

TEST_CASE("pickle: what it may name can only be used as it is meant") {
  const std::string rebuild = "ctorch._utils\n_rebuild_tensor_v2\n";
  CHECK(refuses(kProtocol2 + rebuild + ")R.", "_rebuild_tensor_v2 with other arguments"));
  CHECK(refuses(kProtocol2 + rebuild + "N\x85R.", "_rebuild_tensor_v2 with other arguments"));
  CHECK(refuses(kProtocol2 + "K\x01)R.", "calls something that is no function"));
  CHECK(refuses(kProtocol2 + "ccollections\nOrderedDict\nK\x01R.", "no function"));
  CHECK(refuses(kProtocol2 + "ccollections\nOrderedDict\n](K\x01"
                             "e\x85R.",
                "no list of pairs"));
  CHECK(refuses(kProtocol2 + "ctorch\nFloatStorage\n)R.", "FloatStorage"));
  CHECK(refuses(kProtocol2 + "K\x01Q.", "no storage"));
  CHECK(refuses(kProtocol2 + ")Q.", "no storage"));
  CHECK(refuses(kProtocol2 + "]}b.", "sets attributes"));
  CHECK(refuses(kProtocol2 + "}K\x01"
                             "a.",
                "appends to"));
  CHECK(refuses(kProtocol2 + "]K\x01K\x01s.", "sets a key"));
  CHECK(refuses(kProtocol2 + "}(K\x01u.", "without a value"));
}

TEST_CASE("pickle: stack, marks and memo cannot be abused") {
  CHECK(refuses(kProtocol2 + ".", "0 values"));
  CHECK(refuses(kProtocol2 + "NN.", "2 values"));
  CHECK(refuses(kProtocol2 + "(N.", "values instead of one"));
  CHECK(refuses(kProtocol2 + "0.", "empty stack"));
  CHECK(refuses(kProtocol2 + "2.", "empty stack"));
  CHECK(refuses(kProtocol2 + "t.", "mark"));
  CHECK(refuses(kProtocol2 + "1.", "mark"));
  CHECK(refuses(kProtocol2 + "N(\x85.", "empty stack"));
  CHECK(refuses(kProtocol2 + "N(R.", "empty stack"));
  CHECK(refuses(kProtocol2 + "q\x01.", "empty stack"));
  CHECK(refuses(kProtocol2 + "h\x01.", "recalls value 1"));
  CHECK(refuses(kProtocol2 + "Nq\x05h\x04.", "recalls value 4"));
  CHECK(refuses(kProtocol2 + "Nr\xff\xff\xff\xff.", "keeps a value at 4294967295"));
  CHECK(refuses(kProtocol2 + "X\xff\xff\xff\xff"
                             "a.",
                "needs 4294967295 bytes"));
  CHECK(refuses("\x80\x04\x8d" + std::string(8, '\xff') + "a.", "needs"));
  CHECK(refuses(kProtocol2, "needs 1 bytes"));
  CHECK(refuses("", "needs 1 bytes"));
}

TEST_CASE("pickle: memory is bounded, whatever the operations") {
  const auto repeated = [](const std::string& operation, std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += operation;
    return all;
  };
  constexpr std::size_t kMany = 100000;
  for (const std::string operation : {"N", "]", "(", ")", "}", "(t", "N\x94", "]2a", "(K\x01l"}) {
    CAPTURE(operation);
    CHECK(!refusal("\x80\x04]" + repeated(operation, kMany) + ".").empty());
  }
  CHECK(refuses("\x80\x04" + repeated("N", kMany) + ".", "more memory"));
  CHECK(refuses("\x80\x04" + repeated("]", kMany) + ".", "more memory"));
  CHECK(refuses("\x80\x04N" + repeated("\x94", kMany) + ".", "more memory"));
  // Ten million marks: no recursion, no growth beyond the bound.
  CHECK(refuses("\x80\x04" + std::string(10000000, '('), "more memory"));
  // A list that contains itself is no trouble to read.
  const Pickle self = read(kProtocol2 +
                           "]q\x01h\x01"
                           "a.");
  CHECK(self.items(self.value)[0].node == self.value.node);
}
