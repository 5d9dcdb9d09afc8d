// rwkv.cpp's and llama.cpp's files.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "real_data.h"
#include "store/foreign_samples.h"

using namespace quipu;
using quipu_test::bytes_of;
using quipu_test::ggmf_header;
using quipu_test::ggmf_tensor;
using quipu_test::gguf;
using quipu_test::gguf_tensor;
using quipu_test::gguf_text;
using quipu_test::gguf_value;
using quipu_test::open_bytes;
using quipu_test::refusal;
using quipu_test::refused_beginnings;
using quipu_test::refuses;

TEST_CASE("ggmf: header, tensors, numbers; the innermost axis comes last") {
  const std::string file = quipu_test::ggmf_sample();
  const auto source = open_bytes(file);
  CHECK(source->format() == "ggmf");
  CHECK(std::get<std::int64_t>(*source->metadata().find("n_embed")) == 64);
  CHECK(std::get<std::string>(*source->metadata().find("data_type")) == "q5_1");
  CHECK(type_and_shape(source->tensor("w")) == "f32 [2, 3]");
  CHECK(type_and_shape(source->tensor("h")) == "f16 [2, 1, 1]");
  CHECK(type_and_shape(source->tensor("q")) == "q5_1 [1, 32]");
  CHECK(source->read("w") == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(source->read("h") == std::vector<float>{1, -2});
  const auto q = source->read("q");
  CHECK(q[0] == 3);   // 1 + 2
  CHECK(q[31] == 4);  // 2 + 2
  // A file may end behind any tensor, and nowhere else.
  CHECK(refused_beginnings(file) == file.size() - 3);
}

TEST_CASE("ggmf: old, unknown and impossible files are refused") {
  const std::string one = ggmf_tensor("w", 0, {1}, "1234");
  CHECK(refusal(ggmf_header(100) + one).empty());
  CHECK(refuses(ggmf_header(102) + one, "version 102"));
  CHECK(refuses(ggmf_header(100, 2) + one, "version 100"));
  CHECK(refuses(ggmf_header(101, 4) + one, "type 4"));
  CHECK(refuses(ggmf_header() + ggmf_tensor("w", 77, {1}, "1234"), "type 77"));
  CHECK(refuses(ggmf_header() + ggmf_tensor("w", 2, {31}, std::string(18, 'x')), "no multiple of 32"));
  CHECK(refuses(ggmf_header() + ggmf_tensor("w", 0, {}, "1234"), "0 axes"));
  CHECK(refuses(ggmf_header() + ggmf_tensor("w", 0, {1, 1, 1, 1}, "1234"), "4 axes"));
  CHECK(refuses(ggmf_header() + ggmf_tensor("w", 0, {0}, ""), "no numbers"));
  CHECK(refuses(ggmf_header() + ggmf_tensor("w", 0, {~0U, ~0U, ~0U}, "1234"), "claims"));
  CHECK(refuses(ggmf_header() + ggmf_tensor("w", 0, {~0U, ~0U}, "1234"), "claims"));
  CHECK(refuses(ggmf_header() + ggmf_tensor("w", 0, {~0U}, "1234"), "17179869180 bytes"));
  CHECK(refuses(ggmf_header() + one + one, "two tensors named 'w'"));
}

TEST_CASE("ggmf: the published tiny models of rwkv.cpp") {
  struct Model {
    std::string name;
    std::size_t tensors;
    const char* embedding;
  };
  for (const Model& model :
       {Model{"4v0-660K-FP32", 78, "f32 [256, 128]"}, Model{"5v2-730K-FP32", 270, "f32 [256, 64]"},
        Model{"6v0-3m-Q5_1", 342, "f32 [256, 128]"}, Model{"7v0-834K-FP32", 339, "f32 [256, 64]"}}) {
    CAPTURE(model.name);
    const auto path = quipu_test::real_file("checkpoints/rwkv.cpp/tiny-rwkv-" + model.name + ".bin");
    if (!path) {
      MESSAGE("skipped: the published models are not here");
      return;
    }
    const auto source = open_tensor_source(*path);
    CHECK(source->tensors().size() == model.tensors);
    CHECK(type_and_shape(source->tensor("emb.weight")) == model.embedding);
    CHECK(source->find("blocks.0.att.receptance.weight") != nullptr);
    for (const TensorInfo& tensor : source->tensors()) {
      float largest = 0;
      bool finite = true;
      for (const float value : source->read(tensor.name)) {
        finite = finite && std::isfinite(value);
        largest = std::max(largest, std::abs(value));
      }
      CAPTURE(tensor.name);
      CHECK(finite);
      CHECK(largest < 1e4F);
    }
  }
}

TEST_CASE("GGUF: key-values, lists, tensors") {
  const std::string file = quipu_test::gguf_sample();
  const auto source = open_bytes(file);
  CHECK(source->format() == "GGUF");
  const SourceMetadata& metadata = source->metadata();
  CHECK(std::get<std::string>(*metadata.find("general.architecture")) == "rwkv6");
  CHECK(std::get<std::int64_t>(*metadata.find("n")) == 7);
  CHECK(std::get<double>(*metadata.find("eps")) == static_cast<double>(1e-5F));
  CHECK(std::get<bool>(*metadata.find("yes")));
  CHECK(std::get<std::string>(*metadata.find("huge")) == "18446744073709551615");
  const auto& tokens = std::get<MetadataArray>(*metadata.find("tokens"));
  CHECK(tokens.strings() == std::vector<std::string>{"a", "", "\xff\n"});
  CHECK_THROWS_AS(tokens.numbers(), InputError);
  const auto& scores = std::get<MetadataArray>(*metadata.find("scores"));
  CHECK(scores.numbers() == std::vector<double>{0.5, -1});
  CHECK_THROWS_AS(scores.strings(), InputError);
  CHECK(type_and_shape(source->tensor("w")) == "f32 [2, 3]");
  CHECK(type_and_shape(source->tensor("q")) == "q8_0 [2, 32]");
  CHECK(source->read("w") == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(source->read("q") == std::vector<float>(64, 3));
  CHECK(source->read("b") == std::vector<float>{1, 2});
  CHECK(refused_beginnings(file) == file.size());
}

TEST_CASE("GGUF: what claims too much, overlaps or is unknown is refused") {
  const std::string data(64, '\0');
  const auto one = [&](const std::string& tensor) { return gguf(0, "", 1, tensor, data); };
  CHECK(refusal(one(gguf_tensor("w", {4}, 0, 32))).empty());
  CHECK(refusal(gguf(0, "", 1, gguf_tensor("w", {4}, 0, 32), data, 2)).empty());
  CHECK(refuses(gguf(0, "", 0, "", data, 1), "version 1"));
  CHECK(refuses(one(gguf_tensor("w", {4}, 0, 16)), "aligned to 32"));
  CHECK(refuses(one(gguf_tensor("w", {4}, 0, 64)), "16 bytes at byte 128"));
  CHECK(refuses(one(gguf_tensor("w", {4}, 0, ~std::uint64_t{31})), "begins at byte"));
  CHECK(refuses(one(gguf_tensor("w", {~std::uint64_t{0}}, 0, 0)), "claims"));
  CHECK(refuses(one(gguf_tensor("w", {std::uint64_t{1} << 40, std::uint64_t{1} << 40}, 0, 0)), "claims"));
  CHECK(refuses(one(gguf_tensor("w", {1, 1, 1, 1, 1}, 0, 0)), "5 axes"));
  CHECK(refuses(one(gguf_tensor("w", {256}, 12, 0)), "type 12"));
  CHECK(refuses(gguf(0, "", 2, gguf_tensor("v", {16}, 0, 0) + gguf_tensor("w", {8}, 0, 32), data), "beyond the start"));
  CHECK(refuses(gguf(0, "", 2, gguf_tensor("w", {8}, 0, 0) + gguf_tensor("w", {8}, 0, 32), data), "two tensors"));
  CHECK(refuses(gguf(0, "", ~std::uint64_t{0}, "", data), "tensors"));
  CHECK(refuses(gguf(~std::uint64_t{0}, "", 0, "", data), "key-values"));
  const auto value = [&](const std::string& bytes) { return gguf(1, bytes, 0, "", data); };
  CHECK(refuses(value(gguf_value("k", 13, "")), "type 13"));
  CHECK(refuses(value(gguf_value("k", 9, bytes_of(std::uint32_t{9}))), "lists of lists"));
  CHECK(refuses(value(gguf_value("k", 9, bytes_of(std::uint32_t{10}) + bytes_of(~std::uint64_t{0}))), "elements"));
  CHECK(refuses(value(gguf_value("k", 8, bytes_of(~std::uint64_t{0}))), "needs"));
  CHECK(refuses(value(gguf_value("general.alignment", 4, bytes_of(std::uint32_t{0}))), "multiple of 8"));
  CHECK(refuses(gguf(2, gguf_value("k", 7, "1") + gguf_value("k", 7, "1"), 0, "", data), "'k' twice"));
}
