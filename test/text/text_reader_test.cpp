#include "text/text_reader.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <vector>

#include "base/error.h"
#include "text/sample_files.h"
#include "text/sample_texts.h"

using namespace quipu;

namespace {

std::string read_in_blocks(const std::string& path, std::size_t block_bytes) {
  TextReader reader(path);
  std::string text;
  std::vector<char> block(block_bytes);
  while (const std::size_t got = reader.read(block)) text.append(block.data(), got);
  CHECK(reader.read(block) == 0);
  return text;
}

std::string message_of(const std::string& path) {
  try {
    (void)read_text(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// Standard input is a file for the time of its life.
class StandardInput {
 public:
  explicit StandardInput(const std::string& path) : saved_(dup(0)) {
    const int fd = open(path.c_str(), O_RDONLY);
    REQUIRE(dup2(fd, 0) == 0);
    close(fd);
  }
  ~StandardInput() {
    dup2(saved_, 0);
    close(saved_);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

 private:
  int saved_;
};

}  // namespace

TEST_CASE("text reader: plain and gzip files, in blocks of any size") {
  const ScratchFolder folder;
  const std::string long_run(1000000, 'x');
  for (const std::string& text : {sample_prose(), random_bytes(1, 5000), std::string("x"), std::string("\x1f"),
                                  std::string("\x1fx"), std::string("\n"), long_run}) {
    const std::string plain = folder.write("plain.txt", text);
    const std::string packed = folder.write("packed.txt", gzip(text));
    const std::string half = text.substr(0, text.size() / 2);
    const std::string twice = folder.write("twice.gz", gzip(half) + gzip("") + gzip(text) + std::string(512, '\0'));
    for (const std::size_t block : {std::size_t{1}, std::size_t{3}, std::size_t{4096}, std::size_t{1} << 21}) {
      if (block < 100 && text.size() > 100000) continue;
      CHECK(read_in_blocks(plain, block) == text);
      CHECK(read_in_blocks(packed, block) == text);
      CHECK(read_in_blocks(twice, block) == half + text);
    }
    CHECK(read_text(packed) == text);
  }
}

TEST_CASE("text reader: standard input") {
  const ScratchFolder folder;
  {
    const StandardInput input(folder.write("a", gzip("from a pipe")));
    CHECK(read_text("-") == "from a pipe");
  }
  const StandardInput input(folder.write("b", ""));
  CHECK(message_of("-") == "stdin: is empty; give a text with something in it");
}

TEST_CASE("text reader: what is wrong with a file, in one line that begins with its name") {
  const ScratchFolder folder;
  const std::string packed = gzip(sample_prose());
  const std::string missing = folder.path("missing.txt");
  CHECK(message_of(missing) == missing + ": cannot read: No such file or directory");
  CHECK(message_of(folder.path("")) == folder.path("") + ": is a folder; give a file");
  for (const std::string& nothing : {folder.write("empty.txt", ""), folder.write("empty.gz", gzip(""))}) {
    CHECK(message_of(nothing) == nothing + ": is empty; give a text with something in it");
  }
  for (const std::size_t size : {std::size_t{2}, std::size_t{9}, std::size_t{200}, packed.size() - 1}) {
    const std::string cut = folder.write("cut.gz", packed.substr(0, size));
    CHECK(message_of(cut) == cut + ": its gzip data are cut short; get the file again");
  }
  std::string flipped = packed;
  flipped[packed.size() - 6] = static_cast<char>(flipped[packed.size() - 6] ^ 1);
  for (const std::string& bytes : {flipped, packed + "rubbish", std::string("\x1f\x8bnot gzip at all")}) {
    const std::string damaged = folder.write("damaged.gz", bytes);
    CHECK(message_of(damaged).starts_with(damaged + ": its gzip data are damaged ("));
    CHECK(message_of(damaged).find('\n') == std::string::npos);
  }
}
