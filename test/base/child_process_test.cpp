#include "base/child_process.h"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "base/error.h"
#include "base/temporary_folder.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;

namespace {

ChildEnd end_of(ChildProcess& child) {
  for (int i = 0; i < 1000; ++i) {
    if (const auto end = child.poll()) return *end;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL("the process does not end");
  return {};
}

}  // namespace

TEST_CASE("child process: output anew, errors at the end of a file, and its status") {
  const TemporaryFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  for (int i = 0; i < 2; ++i) {
    ChildProcess child("/bin/sh", {"-c", "cat; echo \"$1\"; echo trouble >&2; exit 7", "sh", "two words"}, out, err);
    const ChildEnd end = end_of(child);
    CHECK(end.status == 7);
    CHECK(end.wall_s > 0);
    CHECK(end.peak_bytes > 100000);
    CHECK(child.poll()->status == 7);  // again
  }
  CHECK(read_whole(out) == "two words\n");
  CHECK(read_whole(err) == "trouble\ntrouble\n");
}

TEST_CASE("child process: signals reach it, and it can catch them though this process ignores them") {
  const TemporaryFolder folder;
  const auto old = std::signal(SIGUSR1, SIG_IGN);
  ChildProcess child("/bin/sh", {"-c", "trap 'exit 75' USR1; echo ready; while :; do sleep 0.01; done"}, folder / "out",
                     folder / "err");
  for (int i = 0; i < 1000 && read_whole(folder / "out").empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK_FALSE(child.poll());
  child.signal(SIGUSR1);
  CHECK(end_of(child).status == 75);
  std::signal(SIGUSR1, old);
  ChildProcess killed("/bin/sh", {"-c", "sleep 100"}, folder / "out", folder / "err");
  killed.signal(SIGKILL);
  CHECK(end_of(killed).status == 128 + SIGKILL);
}

TEST_CASE("child process: what cannot be started is named") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& program, const std::string& output) -> std::string {
    try {
      ChildProcess(program, {}, output, folder / "err");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message(folder / "absent", folder / "out").find("absent: cannot be started: No such file") !=
        std::string::npos);
  CHECK(message("/bin/true", folder / "no/out").find("no/out: cannot open: No such file") != std::string::npos);
}
