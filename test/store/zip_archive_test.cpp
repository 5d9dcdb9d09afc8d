#include "store/zip_archive.h"

#include <doctest/doctest.h>

#include "store/foreign_bytes.h"

using namespace quipu;
using quipu_test::ZipBytes;
using quipu_test::ZipPart;

namespace {

/// What is said of an archive that must be refused, when all of it is read.
std::string refusal(const std::string& bytes) {
  const MappedFile file = MappedFile::borrow("f", std::as_bytes(std::span(bytes)));
  try {
    const ZipArchive archive(file);
    for (const ZipEntry& entry : archive.entries()) archive.read(entry);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool refuses(const std::string& bytes, std::string_view because) {
  return refusal(bytes).find(because) != std::string::npos;
}

}  // namespace

TEST_CASE("entries are found and read, stored and deflated") {
  const std::string text(100000, 'q');
  const std::string bytes = quipu_test::zip({{"a/b", "stored"}, {"c", text, true}, {"empty", ""}});
  const MappedFile file = MappedFile::borrow("f", std::as_bytes(std::span(bytes)));
  const ZipArchive archive(file);
  REQUIRE(archive.entries().size() == 3);
  CHECK(archive.read(*archive.find("a/b")) == "stored");
  CHECK(archive.stored(*archive.find("a/b")).size() == 6);
  CHECK(archive.read(*archive.find("c")) == text);
  CHECK(archive.find("c")->compressed < 1000);
  CHECK(archive.read(*archive.find("empty")).empty());
  CHECK(archive.find("d") == nullptr);
  ZipReader reader(archive, *archive.find("c"));
  std::string part(60000, '\0');
  reader.read(std::as_writable_bytes(std::span(part)));
  CHECK(reader.left() == 40000);
  CHECK_THROWS_AS(reader.read(std::as_writable_bytes(std::span(part))), InputError);
}

TEST_CASE("bombs, overlaps, duplicates and damage are refused") {
  // 17 MiB of zeros in about 17 KB.
  CHECK(refuses(quipu_test::zip({{"bomb", std::string(17 << 20, '\0'), true}}), "out of proportion"));
  ZipBytes many;
  for (int i = 0; i < 20; ++i) many.add({"part" + std::to_string(i), std::string(1 << 20, '\0'), true});
  CHECK(refuses(many.bytes(), "out of proportion"));
  ZipBytes lying;
  lying.add({"less", std::string(1000, 'x'), true}, 2000);
  CHECK(refuses(lying.bytes(), "expand to 2000"));
  ZipBytes more;
  more.add({"more", std::string(1000, 'x'), true}, 500);
  CHECK(refuses(more.bytes(), "checksum"));
  ZipBytes shared;
  shared.add({"a", "content", false});
  shared.list_again("a");
  CHECK(!refusal(shared.bytes()).empty());
  CHECK(refuses(quipu_test::zip({{"a", "1"}, {"a", "2"}}), "two zip entries named 'a'"));
  std::string damaged = quipu_test::zip({{"a", std::string(3000, 'y'), true}});
  damaged[35] = static_cast<char>(damaged[35] ^ 0x55);
  CHECK(!refusal(damaged).empty());
  std::string checksum = quipu_test::zip({{"a", "content"}});
  checksum[31] = 'x';
  CHECK(refuses(checksum, "checksum"));
}

TEST_CASE("no beginning of an archive is taken for it") {
  const std::string bytes = quipu_test::zip({{"a", "content"}, {"b", std::string(300, 'y'), true}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    if (refusal(bytes.substr(0, size)).empty()) FAIL(size);
  }
}
