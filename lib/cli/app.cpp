#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <new>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/output.h"
#include "base/stop.h"
#include "base/threads.h"
#include "cli/build_info.h"
#include "cli/console.h"
#include "cli/parser.h"
#include "tensor/blas.h"

namespace quipu {
namespace {

int fail(const std::string& message, Status status) {
  console_error(message);
  return static_cast<int>(status);
}

/// The one place where errors become messages and statuses.
int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const ClosedPipe&) {
    return static_cast<int>(Status::kDone);
  } catch (const UsageError& error) {
    return fail(error.what(), Status::kUsage);
  } catch (const NumericError& error) {
    return fail(error.what(), Status::kNumeric);
  } catch (const Error& error) {
    return fail(error.what(), Status::kFailed);
  } catch (const std::bad_alloc&) {
    return fail("out of memory; use a smaller model, batch or context, or give the job more memory", Status::kFailed);
  } catch (const std::system_error& error) {
    return fail(std::string("the system refuses: ") + error.what(), Status::kFailed);
  } catch (const std::exception& error) {
    return fail(std::string("internal error (please report it): ") + error.what(), Status::kFailed);
  }
}

Status run_tool(const ToolInfo& info, const std::vector<std::string>& args,
                const std::function<void(Command&)>& setup) {
  Parser parser(info);
  setup(parser.root());
  if (const auto text = parser.parse(args)) {
    write_output(*text);
    return Status::kDone;
  }
  Common common = parser.common();
  set_console_level(common.quiet, common.verbose);
  const ThreadChoice choice = choose_threads(thread_hints(parser.threads_asked()));
  common.threads = choice.threads;
  common.threads_source = choice.source;
  if (common.thread_list.empty()) common.thread_list = {choice.threads};
  set_threads(choice.threads);
  blas::use(common.blas == "onednn"     ? blas::Library::onednn
            : common.blas == "openblas" ? blas::Library::openblas
                                        : blas::fastest_library());
  log_detail("{}", build_line(build_info()));
  log_detail("threads: {} (from {})", choice.threads, choice.source);
  const Command& chosen = parser.chosen();
  if (info.stops_cleanly && (info.stopping_command.empty() || chosen.app().get_name() == info.stopping_command))
    install_stop_signals();
  return chosen.run(common);
}

}  // namespace

Command& Command::command(const std::string& name, const std::string& summary, const std::string& description) {
  CLI::App* sub = app_->add_subcommand(name, description.empty() ? summary : summary + "\n\n" + description);
  sub->fallthrough();
  app_->require_subcommand(1);
  return commands_.emplace_back(*sub);
}

Status Command::run(const Common& common) const {
  if (!run_) throw InternalError("command {} has nothing to run", app_->get_name());
  return run_(common);
}

int run_app(const ToolInfo& info, int argc, char** argv, const std::function<void(Command&)>& setup) {
  prepare_standard_streams();
  open_console(info.name);
  const std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  const int status = guarded([&] { return static_cast<int>(run_tool(info, args, setup)); });
  const bool reported = status != 0 && output_failed();
  const int closed = guarded([&]() -> int {
    try {
      close_output();
    } catch (const InputError&) {
      if (!reported) throw;
    }
    return 0;
  });
  close_console();
  return status != 0 ? status : closed;
}

}  // namespace quipu
