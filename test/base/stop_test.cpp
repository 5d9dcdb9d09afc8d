#include "base/stop.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <thread>

using namespace quipu;

TEST_CASE("stop: a time limit merges into the poll") {
  reset_stop();
  CHECK_FALSE(stop_requested());
  CHECK(stop_reason() == "");
  CHECK(std::isinf(time_left_s()));
  set_time_limit(1e300);
  CHECK_FALSE(stop_requested());
  set_time_limit(3600);
  CHECK_FALSE(stop_requested());
  CHECK(time_left_s() > 3500);
  set_time_limit(0.001);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(stop_requested());
  CHECK(stop_reason() == "the time limit");
  CHECK(time_left_s() == 0);
  reset_stop();
  CHECK_FALSE(stop_requested());
}

TEST_CASE("stop: the first signal is remembered, and a second SIGINT kills") {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGINT, SIG_IGN);  // as a shell leaves it for the background jobs of a script
    install_stop_signals();
    if (stop_requested()) _exit(1);
    raise(SIGTERM);
    if (!stop_requested() || stop_reason() != "SIGTERM") _exit(2);
    raise(SIGINT);
    raise(SIGUSR1);
    if (stop_reason() != "SIGTERM") _exit(3);
    raise(SIGINT);
    _exit(4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}
