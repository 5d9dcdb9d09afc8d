#pragma once
#include <string>

namespace quipu {

/// A clean stop. SIGTERM, SIGINT, SIGUSR1 or the end of a time limit ask for it; every loop that a user may wait for
/// polls `stop_requested()` and ends at its next safe point. The poll costs a load and, with a time limit, a reading
/// of the clock.

/// Lets SIGTERM, SIGINT and SIGUSR1 ask for a stop; also where the shell had them ignored, as it does for the
/// background jobs of a script. A second SIGINT kills at once. System calls are restarted, not interrupted.
void install_stop_signals();

/// Asks for a stop `seconds` (> 0) from now; a second call replaces the first.
void set_time_limit(double seconds);

/// True from the moment on at which a stop was asked for.
bool stop_requested();

/// Seconds left of the time limit (never below 0), infinity where there is none.
double time_left_s();

/// Who asked: "SIGTERM", "SIGINT", "SIGUSR1", "the time limit", or "" where nobody did.
std::string stop_reason();

/// Forgets signals and time limit: for tests, and for a process that trains several models.
void reset_stop();

}  // namespace quipu
