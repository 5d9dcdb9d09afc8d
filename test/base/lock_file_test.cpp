#include "base/lock_file.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_system.h"
#include "base/temporary_folder.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;
using quipu_test::write_whole;

namespace {

std::string lock_error(const std::string& output) {
  try {
    const LockFile lock(output);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("lock file: one holder at a time, named in the error, gone afterwards") {
  const TemporaryFolder folder;
  const std::string output = folder / "m.h5";
  {
    const LockFile lock(output);
    CHECK(read_whole(output + ".lock").starts_with(fmt::format("{} {} ", host_name(), ::getpid())));
    const std::string error = lock_error(output);
    CHECK(error.find(fmt::format("process {} on {} is writing it", ::getpid(), host_name())) != std::string::npos);
    CHECK(error.find(output + ".lock") != std::string::npos);
    CHECK(std::filesystem::exists(output + ".lock"));
  }
  CHECK(!std::filesystem::exists(output + ".lock"));
  CHECK(lock_error(output) == "no error");
}

TEST_CASE("lock file: is taken over from a killed process") {
  const TemporaryFolder folder;
  const std::string output = folder / "m.h5";
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const LockFile lock(output);
    if (::write(ends[1], "x", 1) == 1) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ends[0], &byte, 1) == 1);
  CHECK(lock_error(output).find(fmt::format("process {} on", child)) != std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  CHECK(std::filesystem::exists(output + ".lock"));
  CHECK(lock_error(output) == "no error");
  CHECK(folder.entries() == 0);
}

TEST_CASE("lock file: a later process with the same number does not keep it, one elsewhere does") {
  const TemporaryFolder folder;
  const std::string output = folder / "m.h5";
  write_whole(output + ".lock", fmt::format("{} {} 1\n", host_name(), ::getpid()));
  CHECK(lock_error(output) == "no error");
  write_whole(output + ".lock", "elsewhere 12345 1\n");
  CHECK(lock_error(output).find("process 12345 on elsewhere") != std::string::npos);
  write_whole(output + ".lock", "");
  CHECK(lock_error(output) == "no error");
}

TEST_CASE("lock file: stands beside the target of a link; pipes and devices need none") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_symlink("real/b.h5", folder / "a.h5");
  const LockFile lock(folder / "a.h5");
  CHECK(std::filesystem::exists(folder / "real/b.h5.lock"));
  const LockFile none("-");
  const LockFile device("/dev/null");
  CHECK(!std::filesystem::exists("/dev/null.lock"));
  CHECK(lock_error(folder / "none/x").find("No such file or directory") != std::string::npos);
}
