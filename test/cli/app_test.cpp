#include "cli/app.h"

#include <doctest/doctest.h>

#include "cli/dummy_tool.h"

using namespace quipu;
using dummy::Outcome;
using dummy::run;
using dummy::run_multi;
using dummy::run_plain;

TEST_CASE("app: options reach the tool, defaults stay where none is given") {
  const Outcome plain = run(run_plain, {"data.h5"});
  CHECK(plain.status == 0);
  CHECK(plain.err == "");
  Json json = plain.json();
  CHECK(json["schema"] == "quipu-plain-1");
  CHECK(json["data"] == "data.h5");
  CHECK(json["steps"] == 2000);
  CHECK(json["warmup"].is_null());
  CHECK(json["seed"] == 1);

  const Outcome full =
      run(run_plain, {"--steps", "64k",   "--warmup=1e3", "-",         "--lr",    "0.01",         "--schedule",
                      "linear",  "--set", "a=1",          "--set",     "b=[2,3]", "--time-limit", "1h30m",
                      "--seed",  "7",     "--json",       "--threads", "3",       "-ofile",       "--stop="});
  REQUIRE(full.status == 0);
  json = full.json();
  CHECK(json["data"] == "-");
  CHECK(json["output"] == "file");
  CHECK(json["steps"] == 64000);
  CHECK(json["warmup"] == 1000);
  CHECK(json["lr"] == 0.01);
  CHECK(json["set"] == Json({"a=1", "b=[2,3]"}));
  CHECK(json["time_limit_s"] == 5400);
  CHECK(json["seed"] == 7);
  CHECK(json["threads"] == 3);
  CHECK(json["json"] == true);
  CHECK(json["stop"] == "");
}

TEST_CASE("app: a plain option takes the last, a repeatable one takes one value each time") {
  const Outcome outcome = run(run_plain, {"--steps", "1", "--set", "a=1", "data.h5", "--steps", "2", "--set", "--b"});
  REQUIRE(outcome.status == 0);
  const Json json = outcome.json();
  CHECK(json["steps"] == 2);
  CHECK(json["data"] == "data.h5");
  CHECK(json["set"] == Json({"a=1", "--b"}));
}

TEST_CASE("app: an empty value written --name= does not eat the next argument") {
  const Outcome outcome = run(run_plain, {"--output=", "data.h5"});
  REQUIRE(outcome.status == 0);
  CHECK(outcome.json()["output"] == "");
  CHECK(outcome.json()["data"] == "data.h5");
}

TEST_CASE("app: statuses and messages of errors") {
  const auto check = [](const std::string& act, int status, const std::string& message) {
    INFO(act);
    const Outcome outcome = run(run_plain, {"d.h5", "--act", act});
    CHECK(outcome.status == status);
    CHECK(outcome.err == (message.empty() ? "" : "plain: " + message + "\n"));
  };
  check("usage", 2, "d.h5: cannot be; give another");
  check("input", 1, "d.h5: broken in two lines; mend it");
  check("shape", 1, "x: 3 is not 4; transpose it");
  check("numeric", 4, "step 7: the loss is not finite; lower --lr");
  check("internal", 1, "internal error (please report it): a bug");
  check("memory", 1, "out of memory; use a smaller model, batch or context, or give the job more memory");
  check("standard", 1, "internal error (please report it): vector");
  check("gate", 3, "");
  const Outcome file = run(run_plain, {"d.h5", "--act", "file"});
  CHECK(file.status == 1);
  CHECK(file.err.starts_with("plain: the system refuses: "));
}

TEST_CASE("app: usage errors are one line and say what to do") {
  const auto check = [](const std::vector<std::string>& args, const std::string& message) {
    INFO(message);
    const Outcome outcome = run(run_plain, args);
    CHECK(outcome.status == 2);
    CHECK(outcome.out == "");
    CHECK(outcome.err == "plain: " + message + "\n");
  };
  check({}, "DATA.h5 is missing; see plain --help");
  check({"a", "b"}, "\"b\" is one argument too many; see plain --help");
  check({"a", "--stepz", "4"}, "unknown option --stepz; did you mean --steps? See plain --help");
  check({"--stepz"}, "unknown option --stepz; did you mean --steps? See plain --help");
  check({"a", "--zzzzzzzz"}, "unknown option --zzzzzzzz; see plain --help");
  check({"a", "-z"}, "unknown option -z; see plain --help");
  check({"a", "--steps"}, "--steps: a value is missing; see plain --help");
  check({"a", "-o", "--steps", "5"}, "-o: its value is missing before --steps; write -o--steps if that is meant");
  check({"a", "--steps", "-5"}, "--steps: -5 is below 1; give 1 or more");
  check({"a", "-n", "x"}, "--steps: \"x\" is not a number; give 1 or more");
  check({"a", "--warmup", "1e10"}, "--warmup: 1e10 is above 2147483647; give a whole number from 0 to 2147483647");
  check({"a", "--lr", "0"}, "--lr: 0 is not above 0; give above 0");
  check({"a", "--schedule", "cos"}, "--schedule: \"cos\" is not a choice; give one of constant, linear, cosine");
  check({"a", "--time-limit", "90"},
        "--time-limit: \"90\" has a number without a unit; write a duration such as 1h30m, 45m or 90s");
  check({"a", "--warmup", "3", "--dry-run"}, "--warmup and --dry-run exclude each other; give one of them");
  check({"a", "--json=maybe"}, "--json: \"maybe\" is neither true nor false; give true or false");
  check({"a", "--threads", "0"}, "--threads: 0 is below 1; give a whole number from 1 to 4096");
}

TEST_CASE("app: commands take common options before and after them") {
  const Outcome outcome =
      run(run_multi, {"--seed", "5", "text", "-o", "a.h5", "--json", "show", "[x,y]", "--", "--odd"});
  CHECK(outcome.err == "");
  REQUIRE(outcome.status == 0);
  const Json json = outcome.json();
  CHECK(json["command"] == "text");
  CHECK(json["seed"] == 5);
  CHECK(json["json"] == true);
  CHECK(json["files"] == Json({"show", "[x,y]", "--odd"}));

  const auto check = [](const std::vector<std::string>& args, const std::string& message) {
    const Outcome bad = run(run_multi, args);
    CHECK(bad.status == 2);
    CHECK(bad.err == "multi: " + message + "\n");
  };
  check({}, "a command is missing; see multi --help");
  check({"txt"}, "\"txt\" is not a command; give one of text, show");
  check({"text", "a"}, "--output is missing; see multi text --help");
  check({"text", "a", "-o", "b", "--tokenize", "bytes"},
        "unknown option --tokenize; did you mean --tokenizer? See multi text --help");
}

TEST_CASE("app: help and version win over a broken command line and go to standard output") {
  Outcome outcome = run(run_plain, {"--steps", "x", "--help"});
  CHECK(outcome.status == 0);
  CHECK(outcome.err == "");
  CHECK(outcome.out.starts_with("Usage: plain [OPTIONS] DATA.h5\n\nshow what the command line said\n"));
  CHECK(outcome.out.find("-n, --steps N") != std::string::npos);
  CHECK(outcome.out.find("(default: 2000)") != std::string::npos);
  CHECK(outcome.out.find("dump-man") == std::string::npos);
  outcome = run(run_multi, {"text", "-h"});
  CHECK(outcome.out.starts_with("Usage: multi text [OPTIONS] FILE... --output FILE\n") == false);
  CHECK(outcome.out.starts_with("Usage: multi text [OPTIONS] FILE... -o FILE\n"));
  CHECK(outcome.out.find("--tokenizer bytes|words|FILE") != std::string::npos);
  CHECK(outcome.out.find("--threads N") != std::string::npos);
  outcome = run(run_multi, {"show", "--version"});
  CHECK(outcome.status == 0);
  CHECK(outcome.out.starts_with("multi (quipu) " QUIPU_VERSION "\n"));
}

TEST_CASE("app: notes, details and warnings") {
  CHECK(run(run_plain, {"d", "--act", "log"}).err == "a note\nplain: warning: a warning\n");
  CHECK(run(run_plain, {"d", "--act", "log", "--quiet"}).err == "plain: warning: a warning\n");
  const std::string verbose = run(run_plain, {"d", "--act", "log", "--quiet", "--verbose", "--threads", "2"}).err;
  CHECK(verbose.starts_with("quipu " QUIPU_VERSION "; "));
  CHECK(verbose.ends_with("\nthreads: 2 (from --threads)\na note\na detail\nplain: warning: a warning\n"));
}

TEST_CASE("app: a closed pipe is a quiet end, a full disk is not") {
  int ends[2];
  for (const char* steps : {"1", "100000"}) {
    INFO(steps);
    REQUIRE(pipe(ends) == 0);
    close(ends[0]);
    const dummy::Folder folder;
    const int err = open((folder.path / "err").c_str(), O_WRONLY | O_CREAT, 0600);
    CHECK(dummy::wait_for(dummy::start(run_plain, {"d", "--act", "lines", "--steps", steps}, ends[1], err)) == 0);
    CHECK(folder.read("err") == "");
    close(ends[1]);
    close(err);

    const Outcome full = run(run_plain, {"d", "--act", "lines", "--steps", steps}, "/dev/full");
    CHECK(full.status == 1);
    CHECK(full.err == "plain: standard output: No space left on device; what was written there is not complete\n");
  }
  const Outcome help = run(run_plain, {"--help"}, "/dev/full");
  CHECK(help.status == 1);
  CHECK(run(run_plain, {"d", "--act", "gate"}, "/dev/full").status == 3);  // nothing was written
}

TEST_CASE("app: a standard output that was closed from the start") {
  const dummy::Folder folder;
  const int err = open((folder.path / "err").c_str(), O_WRONLY | O_CREAT, 0600);
  CHECK(dummy::wait_for(dummy::start(run_plain, {"d", "--act", "gate"}, -1, err)) == 3);
  CHECK(folder.read("err") == "");
  CHECK(dummy::wait_for(dummy::start(run_plain, {"d"}, -1, err)) == 1);
  CHECK(folder.read("err").find("standard output: Bad file descriptor") != std::string::npos);
  close(err);
}

TEST_CASE("app: signals and the time limit stop a tool with status 75") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, 0}) {
    INFO(signal);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const dummy::Folder folder;
    const int err = open((folder.path / "err").c_str(), O_WRONLY | O_CREAT, 0600);
    const pid_t child =
        dummy::start(run_plain, {"d", "--act", "wait", "--time-limit", signal == 0 ? "0.05s" : "1h"}, ends[1], err);
    close(ends[1]);
    char ready = 0;
    REQUIRE(read(ends[0], &ready, 1) == 1);  // the tool runs, its signals are set up
    if (signal != 0) kill(child, signal);
    CHECK(dummy::wait_for(child) == 75);
    const std::string reason = signal == SIGTERM  ? "SIGTERM"
                               : signal == SIGINT ? "SIGINT"
                               : signal != 0      ? "SIGUSR1"
                                                  : "the time limit";
    CHECK(folder.read("err") == "stopped by " + reason + "\n");
    close(ends[0]);
    close(err);
  }
}
