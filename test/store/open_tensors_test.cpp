#include <doctest/doctest.h>

#include <filesystem>

#include "base/temporary_folder.h"
#include "store/describe.h"
#include "store/foreign_bytes.h"
#include "store/store_samples.h"

using namespace quipu;
using quipu_test::bytes_of;
using quipu_test::safetensors;
using quipu_test::TemporaryFolder;
using quipu_test::write_whole;

namespace {

std::string one_float(const std::string& name, float value) {
  return safetensors("{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", bytes_of(value));
}

/// What is said when a file or folder must be refused; "" where it is not.
std::string refusal(const std::string& path) {
  try {
    open_tensor_source(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// A folder with two shards and this index.
class Sharded {
 public:
  explicit Sharded(const std::string& map) {
    write_whole(folder_ / "one.safetensors", one_float("a", 1));
    write_whole(folder_ / "two.safetensors", one_float("b", 2));
    write_whole(index(), "{\"metadata\":{\"total_size\":8,\"x\":[1,{}]},\"weight_map\":{" + map + "}}");
  }
  std::string index() const { return folder_ / "model.safetensors.index.json"; }
  const TemporaryFolder& folder() const { return folder_; }
  bool refuses(std::string_view because) const { return refusal(index()).find(because) != std::string::npos; }

 private:
  TemporaryFolder folder_;
};

const std::string kGood = R"("a":"one.safetensors","b":"two.safetensors")";

}  // namespace

TEST_CASE("a sharded model is opened by its index or its folder, with its configuration") {
  const Sharded model(kGood);
  write_whole(model.folder() / "config.json", R"({"model_type":"gsa"})");
  write_whole(model.folder() / "tokenizer.json", "{}");
  for (const std::string& path : {model.index(), model.folder().path()}) {
    const auto source = open_tensor_source(path);
    CHECK(source->format() == "safetensors");
    CHECK(source->tensors().size() == 2);
    CHECK(source->read("a") == std::vector<float>{1});
    CHECK(source->read("b") == std::vector<float>{2});
    CHECK(source->stored(source->tensor("b"))->size() == 4);
    CHECK(*source->metadata().find_text("config.json") == R"({"model_type":"gsa"})");
    REQUIRE(source->metadata().companions.size() == 2);
    CHECK(source->metadata().companions[1].first == "tokenizer.json");
  }
}

TEST_CASE("shards that are missing, cyclic, elsewhere or not as the index says are refused") {
  CHECK(Sharded(R"("a":"one.safetensors","b":"three.safetensors")").refuses("three.safetensors: cannot read"));
  CHECK(Sharded(R"("a":"model.safetensors.index.json")").refuses("is JSON where a file of tensors belongs"));
  CHECK(Sharded(R"("a":"../../etc/passwd")").refuses("'../../etc/passwd', which is not beside it"));
  CHECK(Sharded(R"("a":"/etc/passwd")").refuses("not beside it"));
  CHECK(Sharded(R"("a":"..")").refuses("not beside it"));
  CHECK(Sharded(R"("a":"")").refuses("not beside it"));
  CHECK(Sharded(R"("a":"one.safetensors\u0000x")").refuses("not beside it"));
  CHECK(Sharded(R"("a":"two.safetensors","b":"one.safetensors")").refuses("does not place there"));
  CHECK(Sharded(R"("a":"one.safetensors")").refuses("") == true);
  CHECK(Sharded(kGood + R"(,"c":"one.safetensors")").refuses("'c' should be in"));
  CHECK(Sharded(kGood + R"(,"a":"two.safetensors")").refuses("'a' twice"));
  CHECK(Sharded(R"("a":1)").refuses("a number where it does not belong"));
  CHECK(Sharded(R"("a":{})").refuses("an object"));
  const Sharded unlisted(R"("b":"two.safetensors")");
  write_whole(unlisted.folder() / "two.safetensors",
              safetensors(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                          R"("z":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                          "12"));
  CHECK(unlisted.refuses("'z', which the index does not place there"));
  const TemporaryFolder folder;
  write_whole(folder / "i.json", R"({"weights":{}})");
  CHECK(refusal(folder / "i.json").find("without a \"weight_map\"") != std::string::npos);
  write_whole(folder / "i.json", R"({"metadata":)" + std::string(1000, '[') + std::string(1000, ']') + "}");
  CHECK(refusal(folder / "i.json").find("nested more than 64") != std::string::npos);
}

TEST_CASE("folders and files that hold no model, and configurations that do harm") {
  const TemporaryFolder folder;
  CHECK(refusal(folder.path()).find("is a folder with none of") != std::string::npos);
  CHECK(refusal(folder / "absent").find("cannot read") != std::string::npos);
  write_whole(folder / "empty", "");
  CHECK(refusal(folder / "empty").find("is empty") != std::string::npos);
  write_whole(folder / "text", "Once upon a time");
  CHECK(refusal(folder / "text").find("begins with 'Once upo'") != std::string::npos);
  write_whole(folder / "model.safetensors", one_float("a", 1));
  CHECK(refusal(folder.path()).empty());
  write_whole(folder / "config.json", "{\"a\":" + std::string(100000, '['));
  CHECK(refusal(folder.path()).find("nested more than 64") != std::string::npos);
  write_whole(folder / "config.json", "{\"a\":");
  CHECK(refusal(folder.path()).find("no JSON") != std::string::npos);
  write_whole(folder / "config.json", "\"" + std::string(5 << 20, 'x') + "\"");
  CHECK(refusal(folder.path()).find("4194304 are the most") != std::string::npos);
}

TEST_CASE("the name of a file does not matter, its content does") {
  const TemporaryFolder folder;
  write_whole(folder / "model.gguf", one_float("a", 4));
  CHECK(open_tensor_source(folder / "model.gguf")->format() == "safetensors");
  std::filesystem::create_symlink(folder / "model.gguf", folder / "link.pth");
  CHECK(open_tensor_source(folder / "link.pth")->read("a") == std::vector<float>{4});
}

TEST_CASE("a checkpoint of ours is a file of tensors too") {
  const TemporaryFolder folder;
  const Checkpoint sample = quipu_test::sample_checkpoint();
  save_checkpoint(folder / "model.h5", sample);
  const auto source = open_tensor_source(folder / "model.h5");
  CHECK(source->format() == "quipu-checkpoint");
  REQUIRE(source->tensors().size() == sample.parameters.size());
  for (const NamedArray& array : sample.parameters) CHECK(source->read(array.name) == array.data);
  CHECK(*source->metadata().find_text("config") == sample.facts.config);
  CHECK(source->metadata().tokenizer == sample.facts.tokenizer);
}

TEST_CASE("files of tensors are described") {
  const TemporaryFolder folder;
  write_whole(folder / "m", one_float("a", 4));
  const FileDescription about = describe_file(folder / "m");
  CHECK(about.format == "safetensors");
  REQUIRE(about.tensors.size() == 1);
  CHECK(type_and_shape(about.tensors[0]) == "f32 [1]");
}
