#pragma once
#include <string_view>

#include "base/file.h"

namespace quipu {

/// Writes to standard output (buffered). Throws ClosedPipe where its reader has gone, or InputError
/// where the system refuses (a full disk).
void write_output(std::string_view text);

/// Hands on what is buffered; same errors.
void flush_output();

/// Flushes and closes standard output, so that a disk that fills up last is still noticed. Throws the first error that
/// a write had, too. To be called once, as the last use.
void close_output();

/// Whether a write has thrown.
bool output_failed();

/// Makes standard output safe to use: a closed pipe becomes an error instead of a signal, and standard streams that
/// were closed before the start are occupied, so that no file opened later takes their number.
void prepare_standard_streams();

}  // namespace quipu
