#include "base/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/file_system.h"
#include "base/temporary_folder.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;
using quipu_test::write_whole;

namespace {

void save(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

/// The message of the InputError that `save` gives.
std::string save_error(const std::string& path) {
  try {
    save(path, "text");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("output file: appears whole, and only by commit") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.txt";
  {
    OutputFile file(path);
    file.write("half");
    CHECK(!std::filesystem::exists(path));
  }
  CHECK(folder.entries() == 0);
  save(path, "old");
  {
    OutputFile file(path);
    file.write("half");
  }
  CHECK(read_whole(path) == "old");
  save(path, "new");
  CHECK(read_whole(path) == "new");
  CHECK(folder.entries() == 1);
}

TEST_CASE("output file: keeps the target's permissions and honours the mask for a new one") {
  const TemporaryFolder folder;
  const mode_t mask = ::umask(027);
  save(folder / "new", "x");
  ::umask(mask);
  struct stat status = {};
  CHECK(::stat((folder / "new").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
  CHECK(::chmod((folder / "new").c_str(), 0604) == 0);
  save(folder / "new", "y");
  CHECK(::stat((folder / "new").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0604);
}

TEST_CASE("output file: follows links, also to files that do not exist yet") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_symlink("real/b.txt", folder / "a.txt");
  std::filesystem::create_symlink(folder / "a.txt", folder / "c.txt");
  save(folder / "c.txt", "one");
  CHECK(read_whole(folder / "real/b.txt") == "one");
  save(folder / "c.txt", "two");
  CHECK(read_whole(folder / "real/b.txt") == "two");
  CHECK(std::filesystem::is_symlink(folder / "a.txt"));
  CHECK(std::filesystem::is_symlink(folder / "c.txt"));
}

TEST_CASE("output file: a name of 255 bytes fits") {
  const TemporaryFolder folder;
  save(folder / std::string(255, 'n'), "long");
  CHECK(read_whole(folder / std::string(255, 'n')) == "long");
  CHECK(folder.entries() == 1);
}

TEST_CASE("output file: errors are one line with path and reason") {
  const TemporaryFolder folder;
  CHECK(save_error(folder / "none/a") == folder / "none/a" + ": cannot write: No such file or directory");
  CHECK(save_error(folder.path()) == folder.path() + ": is a folder; give a file name");
  CHECK(save_error(folder / "x/") == folder / "x/" + ": names a folder; give a file name");
  std::filesystem::create_symlink("loop", folder / "loop");
  CHECK(save_error(folder / "loop") == folder / "loop" + ": cannot write: Too many levels of symbolic links");
  CHECK(save_error("/dev/full") == "/dev/full: cannot write: No space left on device");
  CHECK_THROWS_AS(OutputFile(""), UsageError);
}

TEST_CASE("output file: devices and pipes are written, not replaced") {
  const TemporaryFolder folder;
  save("/dev/null", "x");
  struct stat status = {};
  CHECK(::stat("/dev/null", &status) == 0);
  CHECK(S_ISCHR(status.st_mode));
  const std::string fifo = folder / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const auto access : {OutputFile::Access::stream, OutputFile::Access::random}) {
    std::string text;
    std::thread reader([&] { text = InputFile(fifo).read_all(); });
    {
      OutputFile file(fifo, access);
      file.write("through the pipe");
      file.commit();
    }
    reader.join();
    CHECK(text == "through the pipe");
  }
}

TEST_CASE("output file: the reader of a pipe that has gone is a ClosedPipe") {
  const auto previous = ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  OutputFile file("/dev/fd/" + std::to_string(ends[1]));
  CHECK_THROWS_AS(file.write("x"), ClosedPipe);
  ::close(ends[1]);
  ::signal(SIGPIPE, previous);
}

TEST_CASE("output file: what a killed process left is removed by the next one, what lives stays") {
  const TemporaryFolder folder;
  const std::string path = folder / "m.h5";
  const pid_t child = ::fork();
  if (child == 0) {
    OutputFile file(path);
    file.write("half");
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  // Nothing, where a file can be without a name; and what a killed process leaves elsewhere.
  const int without = ::open(folder.path().c_str(), O_TMPFILE | O_RDWR, 0600);
  CHECK(folder.entries() == (without >= 0 ? 0 : 1));
  ::close(without);
  const std::string left = fmt::format("{}/.m.h5.tmp.{}.{}.0", folder.path(), host_name(), child);
  if (without >= 0) std::ofstream(left) << "half";
  CHECK(std::filesystem::exists(left));
  OutputFile living(path);
  CHECK_FALSE(std::filesystem::exists(left));
  save(path, "whole");
  CHECK(read_whole(path) == "whole");
  living.write("later");
  living.commit();
  CHECK(folder.entries() == 1);
  CHECK(read_whole(path) == "later");
}

TEST_CASE("output file: a folder or file without permission") {
  if (::geteuid() != 0) return;  // needs someone to be turned into nobody
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0755);
  save(folder / "old", "old");
  constexpr uid_t kNobody = 65534;
  REQUIRE(::seteuid(kNobody) == 0);
  const std::string in_folder = save_error(folder / "new");
  const std::string over_file = save_error(folder / "old");
  REQUIRE(::seteuid(0) == 0);
  CHECK(in_folder == folder / "new" + ": cannot write: Permission denied");
  CHECK(over_file == folder / "old" + ": cannot write: Permission denied");
  CHECK(read_whole(folder / "old") == "old");
}

TEST_CASE("input file: reads, peeks at the signature, and seeks") {
  const TemporaryFolder folder;
  const std::string image = std::string("\x89HDF\r\n\x1a\n") + "rest";
  write_whole(folder / "image", image);
  write_whole(folder / "text", "\x89HDF");
  write_whole(folder / "empty", "");
  InputFile file(folder / "image");
  CHECK(file.is_hdf5());
  CHECK(file.is_hdf5());
  CHECK(file.read_all() == image);
  InputFile seekable(folder / "image");
  CHECK(seekable.is_hdf5());
  seekable.make_seekable();
  CHECK(seekable.base() == 0);
  CHECK(seekable.size() == image.size());
  std::vector<std::byte> bytes(4);
  seekable.read_at(8, bytes);
  CHECK(static_cast<char>(bytes[0]) == 'r');
  CHECK_THROWS_AS(seekable.read_at(9, bytes), InputError);
  CHECK(!InputFile(folder / "text").is_hdf5());
  CHECK(!InputFile(folder / "empty").is_hdf5());
  CHECK_THROWS_AS(InputFile(folder / "none"), InputError);
  CHECK_THROWS_AS(InputFile(folder.path()), InputError);
}

TEST_CASE("input file: a pipe is peeked at and spooled without loss") {
  const std::string image = std::string("\x89HDF\r\n\x1a\n") + std::string(3'000'000, 'z') + "end";
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::thread writer([&] {
    OutputFile file("/dev/fd/" + std::to_string(ends[1]));
    ::close(ends[1]);
    file.write(image);
  });
  InputFile file("/dev/fd/" + std::to_string(ends[0]));
  CHECK(file.is_hdf5());
  file.make_seekable();
  writer.join();
  ::close(ends[0]);
  CHECK(file.size() == image.size());
  std::string text(image.size(), ' ');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  CHECK(text == image);
}
