#pragma once
#include <string>
#include <utility>

namespace quipu {

/// The descriptor of this process that a path names (/dev/stdin, /dev/stdout, /dev/stderr, /dev/fd/N,
/// /proc/self/fd/N), or -1. Such a descriptor is used itself, so that its position is kept.
int own_descriptor(const std::string& path);

/// Where a path leads once symbolic links are followed; the last part need not exist. Stops at a path that names a
/// descriptor of this process.
std::string follow_links(const std::string& path);

/// Whether both paths lead to one regular file; a `-` leads to none.
bool is_same_file(const std::string& a, const std::string& b);

/// The folder of a path ("." where it has none), and the name in it.
std::pair<std::string, std::string> split_path(const std::string& path);

/// The name of this machine.
std::string host_name();

/// Whether a process of this machine is alive; one of another user counts.
bool is_process_alive(long process);

/// Flushes a folder's entries to the disk. Returns 0 or an error number; folders that cannot be flushed count as done.
int flush_folder(const std::string& folder);

}  // namespace quipu
