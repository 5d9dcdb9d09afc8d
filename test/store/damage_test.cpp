// Damaged files: a changed byte or a cut end is found, or does no harm; nothing crashes, hangs or grows.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <sstream>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "store/describe.h"
#include "store/store_samples.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;
using quipu_test::wants_slow_tests;
using quipu_test::write_whole;

namespace {

/// A kind of file: how to write one, and how to read all of it, as text that shows every value.
struct Kind {
  const char* name;
  std::function<void(const std::string&)> write;
  std::function<std::string(const std::string&)> read;
};

template <typename Values>
void show(std::ostream& out, const Values& values) {
  for (const auto& value : values) out << +value << ' ';
}

void show(std::ostream& out, const Provenance& provenance) {
  for (const std::string& line : provenance.commands) out << line << '\n';
  for (const std::string& line : provenance.data) out << line << '\n';
}

std::string read_dataset(const std::string& path, std::uint64_t memory) {
  const Dataset data(path, memory);
  std::ostringstream out;
  out << data.digest() << data.vocab() << data.tokenizer().kind;
  for (const auto& [name, bytes] : data.tokenizer().blobs) show(out << name, bytes);
  for (const std::string& name : data.split_names()) {
    const Split& split = data.split(name);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(split.tokens()));
    split.read(0, tokens);
    show(out << name << split.bytes() << ' ' << split.words(), tokens);
    show(out, split.document_starts(0, split.tokens()));
  }
  show(out, data.provenance());
  return out.str();
}

std::string read_checkpoint(const std::string& path) {
  const Checkpoint loaded = load_checkpoint(path);
  std::ostringstream out;
  out << loaded.facts.config << loaded.facts.progress << loaded.facts.tokenizer.kind;
  for (const auto& [name, bytes] : loaded.facts.tokenizer.blobs) show(out << name, bytes);
  for (const auto& [name, value] : loaded.facts.counters) out << name << value;
  for (const auto* arrays : {&loaded.parameters, &loaded.optimizer}) {
    for (const NamedArray& array : *arrays) {
      show(out << array.name, array.shape);
      show(out, array.data);
    }
  }
  show(out, loaded.facts.provenance);
  return out.str();
}

std::string read_state(const std::string& path) {
  const SavedState state = load_state(path, quipu_test::sample_state().parameter_digest);
  std::ostringstream out;
  out << state.tokens;
  for (const SavedLeaf& leaf : state.leaves) {
    show(out << leaf.name, leaf.shape);
    std::visit([&](const auto& data) { show(out, data); }, leaf.data);
  }
  for (const auto& [name, bytes] : state.blobs) show(out << name, bytes);
  show(out, state.provenance);
  return out.str();
}

/// A data set of 150 chunks, whose index is a tree of two levels, with digests in blocks.
void write_long_dataset(const std::string& path) {
  DatasetWriter writer(path, {"bytes", {}}, 256, {});
  std::vector<std::int32_t> tokens(std::size_t{1} << 19);
  for (int piece = 0; piece < 150; ++piece) {
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>((i >> (piece % 8)) & 0xff);
    writer.split("train").append(tokens);
  }
  writer.commit();
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"dataset", quipu_test::write_sample_dataset,
       [](const std::string& path) { return read_dataset(path, Dataset::kMemory); }},
      {"dataset in pieces", quipu_test::write_sample_dataset,
       [](const std::string& path) { return read_dataset(path, 0); }},
      {"checkpoint", [](const std::string& path) { save_checkpoint(path, quipu_test::sample_checkpoint()); },
       read_checkpoint},
      {"state", [](const std::string& path) { save_state(path, quipu_test::sample_state()); }, read_state}};
  return kKinds;
}

void check_one_line(const std::string& path, const std::string& message) {
  CHECK(message.starts_with(path + ": "));
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.size() < 400);
}

/// Reads the file; true where that gave the right text, false where an InputError of one line said no.
bool reads_right(const Kind& kind, const std::string& path, const std::string& right) {
  try {
    const std::string text = kind.read(path);
    CHECK(text == right);
    return true;
  } catch (const InputError& error) {
    check_one_line(path, error.what());
    return false;
  }
}

void set_byte(const std::string& path, std::size_t at, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

}  // namespace

TEST_CASE("damage: a changed byte is found or does no harm") {
  const TemporaryFolder folder;
  const std::string path = folder / "f.h5";
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    kind.write(path);
    const std::string right = kind.read(path);
    const std::string image = read_whole(path);
    std::size_t found = 0;
    const std::size_t step = wants_slow_tests() ? 1 : 97;
    for (std::size_t at = 0; at < image.size(); at += step) {
      INFO("byte ", at);
      for (const int flip : {1 << (at % 8), 0xff}) {
        set_byte(path, at, static_cast<char>(image[at] ^ flip));
        found += reads_right(kind, path, right) ? 0 : 1;
      }
      set_byte(path, at, image[at]);
    }
    CHECK(found > image.size() / step / 10);
    CHECK(reads_right(kind, path, right));
  }
}

TEST_CASE("damage: every bit of names, values and checksums of a small file counts") {
  const TemporaryFolder folder;
  const std::string path = folder / "f.h5";
  const Kind& kind = kinds().back();
  kind.write(path);
  const std::string right = kind.read(path);
  const std::string image = read_whole(path);
  for (const std::string text : {"leaves", "exact", "open bytes", "parameter_digest", "quipu-state", "created"}) {
    const std::size_t at = image.find(text);
    REQUIRE(at != std::string::npos);
    for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
      set_byte(path, at + bit / 8, static_cast<char>(image[at + bit / 8] ^ (1 << bit % 8)));
      CHECK(!reads_right(kind, path, right));
      set_byte(path, at + bit / 8, image[at + bit / 8]);
    }
  }
}

TEST_CASE("damage: a cut or lengthened file is found or does no harm") {
  const TemporaryFolder folder;
  const std::string path = folder / "f.h5";
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    kind.write(path);
    const std::string right = kind.read(path);
    const std::string image = read_whole(path);
    const std::size_t step = wants_slow_tests() ? 7 : 89;
    for (std::size_t n = image.size() - 1; n > step; n -= step) {
      std::filesystem::resize_file(path, n);
      CHECK(!reads_right(kind, path, right));
    }
    write_whole(path, image + std::string(1000, 'x'));
    reads_right(kind, path, right);
    write_whole(path, image.substr(0, image.size() / 2) + std::string(image.size() - image.size() / 2, '\0'));
    CHECK(!reads_right(kind, path, right));
  }
}

TEST_CASE("damage: parts of a large dataset are checked as they are read" * doctest::skip(!wants_slow_tests())) {
  const TemporaryFolder folder;
  const std::string path = folder / "f.h5";
  write_long_dataset(path);
  const std::string image = read_whole(path);
  std::vector<std::int32_t> first(1000), part(1000);
  Dataset(path, 0).split("train").read(0, first);
  std::size_t found = 0;
  for (std::size_t i = 0; i < 3000; ++i) {
    // Every byte of the index, whose nodes begin with TREE, and some of the data.
    const std::size_t node = image.find("TREE", i < 1500 ? 0 : image.size() / 2);
    const std::size_t at = i % 3 == 0 ? (i * 104'729'000) % image.size() : node + i % 1500 * 3;
    set_byte(path, at, static_cast<char>(image[at] ^ (1 << i % 8)));
    try {
      const Dataset data(path, 0);
      for (std::size_t piece = 0; piece < 150; piece += 8) {
        data.split("train").read(static_cast<Index>(piece) << 19, part);
        CHECK(part == first);
      }
    } catch (const InputError& error) {
      check_one_line(path, error.what());
      ++found;
    }
    set_byte(path, at, image[at]);
  }
  CHECK(found > 100);
}

TEST_CASE("damage: a disk that fills up is an error, and the old file stays" * doctest::skip(!wants_slow_tests())) {
  const TemporaryFolder folder;
  const std::string mount = "mount -t tmpfs -o size=1m none " + folder.path() + " 2> /dev/null";
  if (::geteuid() != 0 || std::system(mount.c_str()) != 0) return;
  const std::string path = folder / "m.h5";
  Checkpoint small = quipu_test::sample_checkpoint();
  save_checkpoint(path, small);
  std::string message;
  for (const std::size_t numbers : {std::size_t{250'000}, std::size_t{300'000}, std::size_t{3'000'000}}) {
    Checkpoint large = small;
    large.optimizer = {{"first", {static_cast<Index>(numbers)}, std::vector<float>(numbers, 1.0F)}};
    CHECK_THROWS_WITH_AS(save_checkpoint(path, large), (path + ": cannot write: No space left on device").c_str(),
                         InputError);
    CHECK(load_checkpoint(path).parameters == small.parameters);
    CHECK(folder.entries() == 1);
  }
  small.facts.progress = "afterwards";
  save_checkpoint(path, small);
  CHECK(load_checkpoint(path).facts.progress == "afterwards");
  CHECK(std::system(("umount " + folder.path()).c_str()) == 0);
}

TEST_CASE("damage: a process killed while it saves leaves the old file or the new" *
          doctest::skip(!wants_slow_tests())) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.h5";
  Checkpoint checkpoint = quipu_test::sample_checkpoint();
  checkpoint.optimizer = {{"first", {500'000}, std::vector<float>(500'000)}};
  const auto save = [&](std::int64_t round) {
    checkpoint.facts.counters = {{"round", round}};
    checkpoint.optimizer[0].data.assign(500'000, static_cast<float>(round));
    save_checkpoint(path, checkpoint);
  };
  save(0);
  std::int64_t last = 0;
  int changed = 0;
  for (unsigned i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::int64_t round = last + 1;; ++round) save(round);
    }
    ::usleep(2000 + (i * 7919) % 60'000);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Checkpoint loaded = load_checkpoint(path);
    const std::int64_t round = loaded.facts.counters.at(0).second;
    CHECK(round >= last);
    CHECK(loaded.optimizer.at(0).data == std::vector<float>(500'000, static_cast<float>(round)));
    changed += round > last ? 1 : 0;
    last = round;
    CHECK(folder.entries() <= 2);
  }
  CHECK(changed > 0);
  save(last + 1);
  CHECK(folder.entries() == 1);
}
