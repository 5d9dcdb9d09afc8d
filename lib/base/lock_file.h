#pragma once
#include <string>

#include "base/file.h"

namespace quipu {

/// Keeps a second process from writing the same output. `LockFile lock("model.h5")` makes `model.h5.lock` beside the
/// output (links followed), which names this host and process, and removes it on destruction. It is made with O_EXCL,
/// which also holds on network file systems. A lock whose process is gone from this host is taken over.
/// Throws InputError naming host and process where a live process, or one on another host, holds the lock.
/// An output that is no regular file (`-`, a pipe, a device) needs no lock and gets none.
class LockFile {
 public:
  explicit LockFile(const std::string& output);
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  ~LockFile();

 private:
  bool create();
  void take_over();
  void write_owner();
  void release() noexcept;

  std::string output_;
  std::string path_;  // empty: no lock needed
  Descriptor file_;   // stays open and locked while we live
};

}  // namespace quipu
