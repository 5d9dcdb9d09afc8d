#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace quipu {

/// What can go wrong, by who can mend it. A message reads `where: what, with both numbers; what to do`: one line,
/// lower case, no C++ names; `run_app` puts the tool's name before it. The library throws, `run_app` catches once.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The command line or configuration asks for something that cannot be (exit status 2).
class UsageError : public Error {
 public:
  template <typename... Args>
  explicit UsageError(fmt::format_string<Args...> text, Args&&... args)
      : Error(fmt::format(text, std::forward<Args>(args)...)) {}
};

/// A file or a text is not what it should be, or the system refuses (exit status 1).
class InputError : public Error {
 public:
  template <typename... Args>
  explicit InputError(fmt::format_string<Args...> text, Args&&... args)
      : Error(fmt::format(text, std::forward<Args>(args)...)) {}
};

/// Shapes disagree (exit status 1).
class ShapeError : public Error {
 public:
  template <typename... Args>
  explicit ShapeError(fmt::format_string<Args...> text, Args&&... args)
      : Error(fmt::format(text, std::forward<Args>(args)...)) {}
};

/// A loss, gradient or parameter is no longer finite (exit status 4).
class NumericError : public Error {
 public:
  template <typename... Args>
  explicit NumericError(fmt::format_string<Args...> text, Args&&... args)
      : Error(fmt::format(text, std::forward<Args>(args)...)) {}
};

/// A bug in quipu; the message says so (exit status 1).
class InternalError : public Error {
 public:
  template <typename... Args>
  explicit InternalError(fmt::format_string<Args...> text, Args&&... args)
      : Error("internal error (please report it): " + fmt::format(text, std::forward<Args>(args)...)) {}
};

}  // namespace quipu
