// Advisory locks for processes that take turns. They end with the process that holds them.
#pragma once

#include <memory>
#include <string>

#include "io/file_handle.h"
#include "io/folder.h"

namespace tilework {

enum class Lock { kTaken, kBusy, kUnknown };

// Takes the lock of an open file if it is free. It is held until the descriptor is closed. Two descriptors of
// one process exclude each other too. Unknown where the file system has no locks. Not on Windows.
Lock try_lock(int descriptor);

// The lock of a folder, held until destruction. Two of one process exclude each other too. On Windows it
// holds among the processes of one session of one machine.
class FolderLock {
 public:
  // Takes the lock if it is free: `lock` holds it then. Unknown where the folder or its file system has none.
  static Lock try_take(const FolderPlace& folder, std::unique_ptr<FolderLock>& lock);
  ~FolderLock() { close_file(handle_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(FileHandle handle) : handle_(handle) {}

  FileHandle handle_;
};

}  // namespace tilework
