#include <doctest/doctest.h>

#include <limits>

#include "store/foreign_samples.h"

using namespace quipu;
using quipu_test::bytes_of;
using quipu_test::open_bytes;
using quipu_test::refusal;
using quipu_test::refused_beginnings;
using quipu_test::refuses;
using quipu_test::safetensors;

namespace {

/// One tensor `x` with these fields, and four bytes of data.
std::string with_fields(const std::string& fields) { return safetensors("{\"x\":{" + fields + "}}", "1234"); }

}  // namespace

TEST_CASE("safetensors: names, types, shapes, numbers and metadata") {
  const std::string file = quipu_test::safetensors_sample();
  const auto source = open_bytes(file);
  CHECK(source->format() == "safetensors");
  REQUIRE(source->tensors().size() == 4);
  CHECK(source->tensors()[0].name == "b");
  CHECK(type_and_shape(source->tensor("b")) == "f32 [2, 3]");
  CHECK(type_and_shape(source->tensor("a")) == "bf16 [2]");
  CHECK(source->read("b") == std::vector<float>{1, 2, 3, 4, 5, 6.5F});
  CHECK(source->read("a") == std::vector<float>{1, -3});
  CHECK(source->read("one") == std::vector<float>{-3});
  CHECK(source->read("none").empty());
  CHECK(source->stored(source->tensor("a"))->size() == 4);
  CHECK(std::get<std::string>(*source->metadata().find("format")) == "pt");
  CHECK(source->find("c") == nullptr);
  CHECK_THROWS_AS(source->tensor("c"), InputError);
  std::vector<float> wrong(5);
  CHECK_THROWS_AS(source->read(source->tensor("b"), wrong), ShapeError);
}

TEST_CASE("safetensors: no beginning of a file is taken for the file") {
  const std::string file = quipu_test::safetensors_sample();
  CHECK(refused_beginnings(file) == file.size());
}

TEST_CASE("safetensors: shapes and offsets are checked against each other and the file") {
  CHECK(refusal(with_fields(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])")).empty());
  CHECK(refuses(with_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "8 bytes"));
  CHECK(refuses(with_fields(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), "4 and 8 of 4"));
  CHECK(refuses(with_fields(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), "4 and 0"));
  CHECK(refuses(with_fields(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), "negative number -1"));
  CHECK(refuses(with_fields(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"), "1.0"));
  CHECK(refuses(with_fields(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"), "claims"));
  CHECK(refuses(with_fields(R"("dtype":"F32","shape":[0,9223372036854775807,3],"data_offsets":[0,0])"), "claims"));
  CHECK(refuses(with_fields(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])"), "above 2^63"));
  CHECK(refuses(with_fields(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])"), "9 axes"));
  CHECK(refuses(with_fields(R"("dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4])"), "F8_E4M3"));
  CHECK(refuses(with_fields(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])"), "2 bytes, and 4 follow"));
}

TEST_CASE("safetensors: overlapping tensors, duplicate names and odd headers are refused") {
  CHECK(refuses(safetensors(R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                            R"("y":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})",
                            "1234"),
                "overlap"));
  CHECK(refuses(safetensors(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                            R"("y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                            "1234"),
                "beyond the start of"));
  CHECK(refuses(safetensors(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                            R"("x":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                            "1234"),
                "two tensors named 'x'"));
  CHECK(refuses(with_fields(R"("dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4])"), "'dtype' twice"));
  CHECK(refuses(with_fields(R"("dtype":"U8","shape":[4],"data_offsets":[0,4,4])"), "'data_offsets' twice"));
  CHECK(refuses(with_fields(R"("dtype":"U8","shape":[4])"), "lacks"));
  CHECK(refuses(with_fields(R"("dtype":"U8","shape":[[4]],"data_offsets":[0,4])"), "where it does not belong"));
  CHECK(refuses(safetensors("{\"x\":"), "no JSON"));
  CHECK(refuses(safetensors("{\"x\":" + std::string(100000, '[')), "where it does not belong"));
  CHECK(refuses(bytes_of<std::uint64_t>(1 << 30) + "{", "header"));
  CHECK(refuses(bytes_of(std::numeric_limits<std::uint64_t>::max() >> 8) + "{", "100000000 are the most"));
  CHECK(refuses(safetensors("{\"a\\n\\u001b[31m\":{\"dtype\":\"F9\"}}"), "a\\n\\x1b[31m"));
}
