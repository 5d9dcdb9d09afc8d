#include "store/torch_source.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/temporary_folder.h"
#include "store/foreign_bytes.h"

using namespace quipu;
using quipu_test::bytes_of;
using quipu_test::open_bytes;
using quipu_test::refusal;
using quipu_test::refuses;
using quipu_test::zip;
using quipu_test::ZipPart;

namespace {

std::string foreign(const std::string& name) { return QUIPU_TEST_DATA "/store/foreign/" + name; }

/// Pickled values, as torch.save writes them.
std::string text(const std::string& value) { return "X" + quipu_test::with_length<std::uint32_t>(value); }
std::string number(std::int64_t value) { return "\x8a\x08" + bytes_of(value); }
std::string tuple(const std::vector<std::int64_t>& values) {
  std::string all = "(";
  for (const std::int64_t value : values) all += number(value);
  return all + "t";
}
std::string storage(const std::string& key, std::int64_t elements) {
  return "(" + text("storage") + "ctorch\nFloatStorage\n" + text(key) + text("cpu") + number(elements) + "tQ";
}
std::string tensor(const std::string& from, std::int64_t offset, const std::vector<std::int64_t>& sizes,
                   const std::vector<std::int64_t>& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + from + number(offset) + tuple(sizes) + tuple(strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

/// A file with this pickle and a storage `0` of six floats 0 .. 5.
std::string file_of(const std::string& pickle, bool deflated = false) {
  return zip({{"archive/data.pkl", "\x80\x02" + pickle + "."},
              {"archive/data/0", bytes_of<float>({0, 1, 2, 3, 4, 5}), deflated},
              {"archive/version", "3\n"}});
}

std::string file_with(std::int64_t offset, const std::vector<std::int64_t>& sizes,
                      const std::vector<std::int64_t>& strides) {
  return file_of("}" + text("x") + tensor(storage("0", 6), offset, sizes, strides) + "s");
}

void check_content(const TensorSource& source) {
  const auto read = [&](const char* name) { return source.read("model." + std::string(name)); };
  CHECK(source.tensors().size() == 17);
  std::vector<float> plain(24), transposed(24);
  for (std::size_t i = 0; i < 24; ++i) {
    plain[i] = static_cast<float>(i) / 8;
    transposed[i % 6 * 4 + i / 6] = plain[i];
  }
  CHECK(type_and_shape(source.tensor("model.transposed")) == "f32 [6, 4]");
  CHECK(read("plain") == plain);
  CHECK(read("tied") == plain);
  CHECK(read("transposed") == transposed);
  CHECK(read("window") == std::vector<float>{1.0F, 1.125F, 1.25F, 1.75F, 1.875F, 2.0F});
  CHECK(read("every_second")[4] == 1.0F);
  CHECK(read("parameter") == std::vector<float>{1.5F, -2.5F, 3.25F});
  CHECK(read("double") == std::vector<float>{0.1F, 1e-30F});
  CHECK(read("half")[1] == 65504.0F);
  CHECK(read("half")[2] == 0x1p-24F);
  CHECK(std::signbit(read("half")[3]));
  CHECK(type_and_shape(source.tensor("model.bfloat")) == "bf16 [3]");
  CHECK(read("bfloat")[1] == 3.140625F);
  CHECK(read("long") == std::vector<float>{1, -2, 3});
  CHECK(read("int") == std::vector<float>{7, -8});
  CHECK(read("short") == std::vector<float>{300, -300});
  CHECK(read("char") == std::vector<float>{-128, 127});
  CHECK(read("byte") == std::vector<float>{0, 255});
  CHECK(read("bool") == std::vector<float>{1, 0, 1});
  CHECK(read("scalar") == std::vector<float>{2.5F});
  CHECK(read("empty").empty());
  CHECK(source.stored(source.tensor("model.plain")).has_value());
  CHECK(!source.stored(source.tensor("model.transposed")).has_value());
}

void check_metadata(const SourceMetadata& metadata) {
  CHECK(std::get<std::int64_t>(*metadata.find("step")) == 1234);
  CHECK(std::get<double>(*metadata.find("big")) == 0x1p80);
  CHECK(std::get<double>(*metadata.find("lr")) == 0.001);
  CHECK(std::get<std::string>(*metadata.find("name")) ==
        "a\xc3\xa9"
        "b");
  CHECK(std::get<bool>(*metadata.find("done")));
  CHECK(std::get<std::int64_t>(*metadata.find("sizes.1")) == 4);
  CHECK(std::get<std::string>(*metadata.find("dtype")) == "float16");
  CHECK(std::get<std::string>(*metadata.find("device")) == "cpu");
  CHECK(std::get<std::int64_t>(*metadata.find("history.2.0")) == 3);
  CHECK(metadata.left_out == 1);  // None
}

}  // namespace

TEST_CASE("PyTorch: what torch.save writes, in both forms") {
  for (const auto& [name, format] : {std::pair{"zip.pt", "PyTorch"}, std::pair{"legacy.pt", "PyTorch (legacy)"}}) {
    CAPTURE(name);
    const auto source = open_tensor_source(foreign(name));
    CHECK(source->format() == format);
    check_content(*source);
    check_metadata(source->metadata());
  }
  const auto module = open_tensor_source(foreign("module.pt"));
  CHECK(type_and_shape(module->tensor("weight")) == "f32 [2, 3]");
  CHECK(type_and_shape(module->tensor("bias")) == "f32 [2]");
  CHECK(open_tensor_source(foreign("tensor.pt"))->read("tensor") == std::vector<float>{1, 2});
  CHECK_THROWS_WITH_AS(open_tensor_source(foreign("object.pt")), doctest::Contains("torch.nn.modules.linear.Linear"),
                       InputError);
}

TEST_CASE("PyTorch: no beginning of a file is taken for the file") {
  for (const char* name : {"module.pt", "legacy.pt"}) {
    const std::string file = quipu_test::read_whole(foreign(name));
    REQUIRE(file.size() > 1000);
    CHECK(quipu_test::refused_beginnings(file) == file.size());
  }
}

TEST_CASE("PyTorch: sizes, strides and offsets stay inside the storage") {
  const std::string file = file_with(1, {2, 2}, {1, 2});
  CHECK(open_bytes(file)->read("x") == std::vector<float>{1, 3, 2, 4});
  CHECK(refusal(file_with(5, {1}, {1})).empty());
  CHECK(refusal(file_with(99, {0}, {1})).empty());
  CHECK(refuses(file_with(5, {2}, {1}), "reaches beyond its storage '0' of 24 bytes"));
  CHECK(refuses(file_with(-1, {2}, {1}), "reaches beyond"));
  CHECK(refuses(file_with(5, {2}, {-1}), "reaches beyond"));
  CHECK(refuses(file_with(0, {2, 2}, {4, 2}), "reaches beyond"));
  CHECK(refuses(file_with(0, {-2}, {1}), "claims"));
  CHECK(refuses(file_with(0, {std::int64_t{1} << 62}, {1}), "claims"));
  CHECK(refuses(file_with(0, {2, 2}, {1}), "2 axes and 1 strides"));
  CHECK(refuses(file_with(0, {3}, {std::int64_t{1} << 62}), "reaches beyond"));
  CHECK(refuses(file_with(0, {std::int64_t{1} << 31, std::int64_t{1} << 31}, {0, 0}), "claims"));
  CHECK(refuses(file_with(0, {1 << 30, 1 << 30}, {0, 0}), "repeats them"));
  CHECK(refuses(file_with(0, {1 << 20}, {0}), "repeats them"));
}

TEST_CASE("PyTorch: storages that are missing, too small, shared beyond measure or compressed") {
  const auto one = [](const std::string& from) { return "}" + text("x") + tensor(from, 0, {6}, {1}) + "s"; };
  CHECK(refuses(file_of(one(storage("1", 6))), "storage '1' of 24 bytes is missing"));
  CHECK(refuses(file_of(one(storage("../version", 6))), "is missing"));
  CHECK(refuses(file_of(one(storage("0", 7))), "has only 24"));
  CHECK(refuses(file_of(one(storage("0", std::int64_t{1} << 62))), "beyond 2^61"));
  const std::string deflated = file_of(one(storage("0", 6)), true);
  const auto source = open_bytes(deflated);
  CHECK(source->read("x") == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(!source->stored(source->tensor("x")).has_value());
  CHECK(refuses(file_of("}" + text("x") + tensor(storage("0", 6), 0, {2, 2}, {1, 2}) + "s", true), "compressed"));
  CHECK(refuses(zip({{"a/data.pkl", "\x80\x02" + one(storage("0", 1)) + "."}, {"a/byteorder", "big"}}), "big-endian"));
}

TEST_CASE("PyTorch: a pickle that calls os.system is refused by name, and nothing runs") {
  const quipu_test::TemporaryFolder folder;
  const std::string mark = folder / "ran";
  const std::string attack = "cposix\nsystem\n" + text("touch " + mark) + "\x85R";
  CHECK(refuses(file_of(attack), "posix.system"));
  CHECK(refuses(file_of("}" + text("x") + attack + "s"), "posix.system"));
  const std::string legacy = quipu_test::read_whole(foreign("legacy.pt"));
  CHECK(refuses(legacy.substr(0, legacy.find("\x80\x02", 20)) + "\x80\x02" + attack + ".", "posix.system"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("PyTorch: values that contain themselves, repeat or nest without end") {
  CHECK(refuses(file_of("]q\x01h\x01"
                        "a"),
                "contains itself"));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "](";
  CHECK(refuses(file_of(deep + std::string(1000, 'e')), "64 deep"));
  // Each list holds the one before twice: 2^40 leaves.
  std::string laughs =
      "]K\x01"
      "aq\x01";
  for (int i = 0; i < 40; ++i)
    laughs +=
        "](h\x01h\x01"
        "eq\x01";
  const auto last = [](const std::string& pickle) {
    return "\x80\x04"
           "(" +
           pickle + "1h\x01";
  };
  CHECK(refuses(file_of(last(laughs)), "again and again"));
  const std::string x = tensor(storage("0", 6), 0, {6}, {1});
  CHECK(refuses(file_of("}" + text("a.b") + x + "s" + text("a") + "}" + text("b") + x + "ss"), "two tensors named"));
  CHECK(refuses(file_of("}" + text("x") + x + "s" + text("x") + x + "s"), "two tensors named 'x'"));
  CHECK(refuses(file_of("}" + text(std::string(5000, 'n')) + x + "s"), "more than 4096"));
  CHECK(refuses(file_of("})" + x + "s"), "keys other than"));
}
