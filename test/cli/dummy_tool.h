#pragma once
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "base/stop.h"
#include "cli/app.h"
#include "cli/report.h"

/// Small tools that do nothing but what the tests of the frame need, run in a child process as a user runs them.
namespace dummy {

using quipu::Common;
using quipu::Index;
using quipu::Json;
using quipu::Status;

inline const quipu::ToolInfo kPlain = {
    .name = "plain",
    .summary = "show what the command line said",
    .description =
        "Shows every option.\nTwo lines of a paragraph.\n\nA second paragraph:\n\n  as it stands 'quoted'\n  - so\n\n"
        ".not a macro \\n",
    .examples = {{"plain data.h5 --steps 10", "Ten steps:"}, {"plain - < data.h5", "From a pipe:"}},
    .config_example = "# plain.toml\nsteps = 1e4\nset = [\"a=1\", \"b=2\"]",
    .environment = {{"PLAIN", "Nothing."}},
    .has_gate = true,
    .stops_cleanly = true,
};

struct Options {
  std::string data;
  std::string output = "out.h5";
  Index steps = 2000;
  std::optional<int> warmup;
  double lr = 1e-3;
  std::string schedule = "cosine";
  std::vector<std::string> settings;
  std::optional<double> time_limit;
  bool dry_run = false;
  std::string stop_text;
  std::string act = "show";
};

inline Json show(const Options& o, const Common& common) {
  Json json = quipu::json_report("plain", 1);
  json["data"] = o.data;
  json["output"] = o.output;
  json["steps"] = o.steps;
  json["warmup"] = o.warmup ? Json(*o.warmup) : Json();
  json["lr"] = o.lr;
  json["schedule"] = o.schedule;
  json["set"] = o.settings;
  json["time_limit_s"] = o.time_limit ? Json(*o.time_limit) : Json();
  json["dry_run"] = o.dry_run;
  json["stop"] = o.stop_text;
  json["seed"] = common.seed;
  json["threads"] = common.threads;
  json["json"] = common.json;
  json["quiet"] = common.quiet;
  json["verbose"] = common.verbose;
  return json;
}

inline Status act(const Options& o, const Common& common) {
  const std::string& what = o.act;
  if (what == "usage") throw quipu::UsageError("{}: cannot be; give another", o.data);
  if (what == "input") throw quipu::InputError("{}: broken\nin two lines; mend it", o.data);
  if (what == "shape") throw quipu::ShapeError("x: 3 is not 4; transpose it");
  if (what == "numeric") throw quipu::NumericError("step 7: the loss is not finite; lower --lr");
  if (what == "internal") throw quipu::InternalError("a bug");
  if (what == "memory") throw std::bad_alloc();
  if (what == "standard") throw std::out_of_range("vector");
  if (what == "file") std::filesystem::copy("/nonexistent/file", "/nonexistent/copy");
  if (what == "gate") return Status::kGateMissed;
  if (what == "log") {
    quipu::log_note("a note");
    quipu::log_detail("a detail");
    quipu::log_warning("a warning");
    return Status::kDone;
  }
  if (what == "lines") {
    for (Index i = 0; i < o.steps; ++i) quipu::print_text("a line of some length, so that a buffer fills\n");
    return Status::kDone;
  }
  if (what == "wait") {
    if (o.time_limit) quipu::set_time_limit(*o.time_limit);
    quipu::print_text("ready\n");
    quipu::flush_output();
    while (!quipu::stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    quipu::log_note("stopped by {}", quipu::stop_reason());
    return Status::kStopped;
  }
  quipu::print_json(show(o, common));
  return Status::kDone;
}

inline void set_up_plain(quipu::Command& tool, Options& o) {
  const quipu::Section arguments = tool.section();
  add_argument(arguments, "DATA.h5", o.data, true, "The dataset, or - for standard input.");
  const quipu::Section run = tool.section("Run");
  add_text(run, "-o,--output", o.output, "FILE", "Where the result goes.");
  add_count(run, "-n,--steps", o.steps, 1, quipu::kMaxCount, "Steps to take.");
  auto& warmup = add_count(run, "--warmup", o.warmup, 0, quipu::kMaxCount, "Steps of warm-up.");
  auto& dry_run = add_flag(run, "--dry-run", o.dry_run, "Only say what would be done.");
  quipu::exclude(warmup, dry_run);
  add_duration(run, "--time-limit", o.time_limit, "Stop after this time.");
  const quipu::Section optimiser = tool.section("Optimiser");
  add_real(optimiser, "--lr", o.lr, quipu::above(0), "Learning rate.");
  add_choice(optimiser, "--schedule", o.schedule, {"constant", "linear", "cosine"}, "How the learning rate falls.");
  add_texts(optimiser, "--set", o.settings, "KEY=VALUE", "An option of the mixer.");
  add_text(run, "--stop", o.stop_text, "TEXT", "A text.");
  add_text(run, "--act", o.act, "WHAT", "What to do.");
  tool.runs([&o](const Common& common) { return act(o, common); });
}

inline int run_plain(int argc, char** argv) {
  Options options;
  return quipu::run_app(kPlain, argc, argv, [&](quipu::Command& tool) { set_up_plain(tool, options); });
}

inline const quipu::ToolInfo kMulti = {
    .name = "multi",
    .summary = "has commands",
    .description = "A tool with two commands.",
    .config_example = "[text]\noutput = \"a.h5\"",
};

inline int run_multi(int argc, char** argv) {
  std::string output;
  std::vector<std::string> files;
  std::string kind = "bytes";
  return quipu::run_app(kMulti, argc, argv, [&](quipu::Command& tool) {
    auto& text = tool.command("text", "text to dataset", "Makes a dataset of text.");
    quipu::required(add_text(text.section(), "-o,--output", output, "FILE", "The dataset."));
    add_text(text.section(), "--tokenizer", kind, "bytes|words|FILE", "How text becomes tokens.");
    add_arguments(text.section(), "FILE", files, true, "Texts.");
    text.runs([&](const Common& common) {
      quipu::print_json({{"command", "text"},
                         {"output", output},
                         {"files", files},
                         {"tokenizer", kind},
                         {"seed", common.seed},
                         {"json", common.json}});
      return Status::kDone;
    });
    auto& show = tool.command("show", "say what a file is");
    add_arguments(show.section(), "FILE", files, true, "Files.");
    show.runs([&](const Common&) {
      quipu::print_json({{"command", "show"}, {"files", files}});
      return Status::kDone;
    });
  });
}

/// A folder of its own that vanishes with it.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "quipu_cli_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

struct Outcome {
  int status = 0;  // minus the signal, where one killed it
  std::string out;
  std::string err;
  Json json() const { return Json::parse(out); }
};

using Main = int (*)(int, char**);

/// Starts `tool` in a child; `stdout_fd` as its standard output, or closed where it is -1.
inline pid_t start(Main tool, std::vector<std::string> args, int stdout_fd, int stderr_fd) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  if (stdout_fd >= 0)
    dup2(stdout_fd, STDOUT_FILENO);
  else
    close(STDOUT_FILENO);
  dup2(stderr_fd, STDERR_FILENO);
  args.insert(args.begin(), "tool");
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  _exit(tool(static_cast<int>(args.size()), argv.data()));
}

inline int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Runs a tool to its end. `stdout_path` stands in for its standard output.
inline Outcome run(Main tool, const std::vector<std::string>& args, const char* stdout_path = nullptr) {
  const Folder folder;
  const int out = open(stdout_path != nullptr ? stdout_path : (folder.path / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  const int err = open((folder.path / "err").c_str(), O_WRONLY | O_CREAT, 0600);
  Outcome outcome;
  outcome.status = wait_for(start(tool, args, out, err));
  close(out);
  close(err);
  outcome.out = folder.read("out");
  outcome.err = folder.read("err");
  return outcome;
}

}  // namespace dummy
