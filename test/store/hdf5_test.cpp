#include "store/hdf5.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <numeric>
#include <thread>

#include "base/temporary_folder.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;
using quipu_test::write_whole;

namespace {

const H5Format kTest{"quipu-test", 2};

template <typename T>
std::vector<T> ramp(std::size_t n) {
  std::vector<T> data(n);
  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<T>(i * 7 % 251);
  if (n > 0) data[n - 1] = std::numeric_limits<T>::max();
  return data;
}

template <typename T>
void round_trip(const TemporaryFolder& folder) {
  const std::string path = folder / "type.h5";
  const auto data = ramp<T>(2 * 3 * 5);
  const T one = data.back();
  {
    H5Writer file(path, kTest);
    file.write("/deep/er/cube", std::span<const T>(data), {2, 3, 5});
    file.write("/scalar", std::span<const T>(&one, 1), {});
    file.write("/empty", std::span<const T>(), {0});
    file.write("/flat", std::span<const T>(), {4, 0});
    file.commit();
  }
  const H5Reader file(path, {kTest});
  CHECK(file.read<T>("/deep/er/cube") == data);
  CHECK(file.entry("/deep/er/cube").shape == H5Shape{2, 3, 5});
  CHECK(file.read<T>("/scalar") == std::vector<T>{one});
  CHECK(file.entry("/scalar").shape.empty());
  CHECK(file.read<T>("/empty").empty());
  CHECK(file.entry("/flat").shape == H5Shape{4, 0});
  file.verify();
}

template <typename Act>
std::string error_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string open_error(const std::string& path) {
  return error_of([&] { const H5Reader file(path, {kTest}); });
}

/// A file with every kind of thing in it, written by the same calls each time.
void write_all_kinds(const std::string& path) {
  H5Writer file(path, kTest);
  const auto rows = ramp<float>(3 * 400'000);  // rows of 1.6 MB: a chunk is part of a row
  file.write("/wide", std::span<const float>(rows), {3, 400'000});
  file.attribute("/wide", "mean", 0.5);
  file.attribute("/wide", "minus", std::int64_t{-1});
  file.attribute("/", "note", "a short one");
  file.attribute("/", "nothing", "");
  file.write_text("/text", "line\nline\n");
  H5Stream& stream = file.stream("/stream", ElementType::kUInt16);
  const auto tokens = ramp<std::uint16_t>(1'300'001);
  stream.append(std::span<const std::uint16_t>(tokens).first(7));
  stream.append(std::span<const std::uint16_t>(tokens).subspan(7));
  file.finish(stream);
  file.attribute("/stream", "count", std::uint64_t{1'300'001});
  H5Stream& small = file.stream("/small", ElementType::kInt32, {5});
  small.append(std::span<const std::int32_t>(ramp<std::int32_t>(15)));
  file.stream("/never", ElementType::kInt64);
  file.commit();
}

}  // namespace

TEST_CASE("hdf5: every type and rank comes back") {
  const TemporaryFolder folder;
  round_trip<float>(folder);
  round_trip<double>(folder);
  round_trip<std::uint8_t>(folder);
  round_trip<std::uint16_t>(folder);
  round_trip<std::uint32_t>(folder);
  round_trip<std::int32_t>(folder);
  round_trip<std::int64_t>(folder);
  round_trip<std::uint64_t>(folder);
}

TEST_CASE("hdf5: streams, attributes, wide rows and lists come back") {
  const TemporaryFolder folder;
  write_all_kinds(folder / "a.h5");
  const H5Reader file(folder / "a.h5", {kTest});
  CHECK(file.read<std::uint16_t>("/stream") == ramp<std::uint16_t>(1'300'001));
  CHECK(file.read<float>("/wide") == ramp<float>(1'200'000));
  CHECK(file.read<std::int32_t>("/small") == ramp<std::int32_t>(15));
  CHECK(file.entry("/small").shape == H5Shape{3, 5});
  CHECK(file.entry("/never").shape == H5Shape{0});
  CHECK(file.read_text("/text") == "line\nline\n");
  CHECK(file.integer_attribute("/wide", "minus") == -1);
  CHECK(file.unsigned_attribute("/stream", "count") == 1'300'001);
  CHECK(file.text_attribute("/", "note") == "a short one");
  CHECK(file.text_attribute("/", "nothing").empty());
  CHECK(file.children("/") == std::vector<std::string>{"never", "small", "stream", "text", "wide"});
  CHECK(file.version() == 2);
  CHECK(file.created_by() == "quipu " QUIPU_VERSION);
  file.verify();
}

TEST_CASE("hdf5: any rows can be read, also by several threads") {
  const TemporaryFolder folder;
  write_all_kinds(folder / "a.h5");
  const H5Reader file(folder / "a.h5", {kTest});
  const auto all = ramp<std::uint16_t>(1'300'001);
  const auto check = [&](std::size_t seed) {
    bool same = true;
    for (std::size_t i = 0; i < 50; ++i) {
      const std::size_t first = (seed + i * 262'139) % all.size();
      std::vector<std::uint16_t> part(std::min((i * 37'501) % 700'000, all.size() - first));
      file.read_rows<std::uint16_t>("/stream", first, part);
      same = same && std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(first));
    }
    return same;
  };
  bool other = false;
  std::thread thread([&] { other = check(99); });
  CHECK(check(0));
  thread.join();
  CHECK(other);
  std::vector<std::int32_t> rows(10);
  file.read_rows<std::int32_t>("/small", 1, rows);
  const auto whole = ramp<std::int32_t>(15);
  CHECK(std::equal(rows.begin(), rows.end(), whole.begin() + 5));
  CHECK_THROWS_AS(file.read_rows<std::int32_t>("/small", 2, rows), ShapeError);
  CHECK_THROWS_AS(file.read_rows<std::int32_t>("/small", 0, std::span(rows).first(4)), ShapeError);
}

TEST_CASE("hdf5: the same calls give the same bytes") {
  const TemporaryFolder folder;
  ::setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
  write_all_kinds(folder / "a.h5");
  write_all_kinds(folder / "b.h5");
  ::unsetenv("SOURCE_DATE_EPOCH");
  CHECK(read_whole(folder / "a.h5") == read_whole(folder / "b.h5"));
  CHECK(H5Reader(folder / "a.h5", {kTest}).created() == "2023-11-14T22:13:20Z");
}

TEST_CASE("hdf5: names the mistake in what is asked for") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  write_all_kinds(path);
  const H5Reader file(path, {kTest});
  CHECK(error_of([&] { file.read<float>("/none"); }) == path + ": lacks /none");
  CHECK(error_of([&] { file.read<float>("/text"); }) == path + ": /text is uint8, not float32");
  std::vector<std::uint8_t> three(3);
  CHECK(error_of([&] { file.read_into<std::uint8_t>("/text", three); }) == path + ": /text has 10 elements, not 3");
  CHECK(error_of([&] { file.unsigned_attribute("/", "note"); }) == path + ": / lacks the attribute note");
  H5Writer writer(folder / "b.h5", kTest);
  writer.write_text("/x", "x");
  CHECK_THROWS_AS(writer.write_text("/x", "x"), InternalError);
  CHECK_THROWS_AS(writer.write_text("/x/y", "x"), InternalError);
  CHECK_THROWS_AS(writer.write_text("/./y", "x"), InternalError);
  CHECK_THROWS_AS(writer.write_text("/a//y", "x"), InternalError);
  const std::vector<float> two(2);
  CHECK_THROWS_AS(writer.write("/y", std::span<const float>(two), {3}), ShapeError);
}

TEST_CASE("hdf5: refuses what is empty, foreign, of another kind or newer") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  write_whole(path, "");
  CHECK(open_error(path) == path + ": is empty; give a quipu-test file");
  write_whole(path, "once upon a time");
  CHECK(open_error(path) == path + ": is not an HDF5 file; give a quipu-test file");
  CHECK(open_error(folder / "none") == folder / "none" + ": cannot read: No such file or directory");
  { H5Writer(path, {"quipu-other", 1}).commit(); }
  CHECK(open_error(path) == path + ": is a quipu-other file, not a quipu-test file");
  { H5Writer(path, {"quipu-test", 3}).commit(); }
  CHECK(open_error(path) == path + ": is version 3 of quipu-test, this build reads up to 2; use a newer quipu");
}

TEST_CASE("hdf5: goes through pipes, and says when a device is full") {
  const TemporaryFolder folder;
  const std::string fifo = folder / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  std::thread writer([&] { write_all_kinds(fifo); });
  {
    const H5Reader file(fifo, {kTest});
    CHECK(file.read<std::uint16_t>("/stream") == ramp<std::uint16_t>(1'300'001));
  }
  writer.join();
  CHECK(error_of([] { write_all_kinds("/dev/full"); }) == "/dev/full: cannot write: No space left on device");
}

TEST_CASE("hdf5: the standard tool reads the file, in chunks of at most 1 MiB with checksums") {
  if (std::system("command -v h5dump > /dev/null 2>&1") != 0) return;
  const TemporaryFolder folder;
  write_all_kinds(folder / "a.h5");
  REQUIRE(std::system(("cd " + folder.path() + " && h5dump -d /small -a /wide/mean a.h5 > data && " +
                       "h5dump -p -H a.h5 > header")
                          .c_str()) == 0);
  const std::string header = read_whole(folder / "header");
  CHECK(header.find("CHUNKED ( 1, 262144 )") != std::string::npos);
  CHECK(header.find("CHUNKED ( 524288 )") != std::string::npos);
  CHECK(header.find("CHUNKED ( 3, 5 )") != std::string::npos);
  CHECK(header.find("CHECKSUM FLETCHER32") != std::string::npos);
  CHECK(read_whole(folder / "data").find("(2,0): 70, 77, 84, 91, 2147483647") != std::string::npos);
}
