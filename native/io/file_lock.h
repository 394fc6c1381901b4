// The advisory lock of an open file or folder, for processes that take turns.
#pragma once

namespace tilework {

enum class Lock { kTaken, kBusy, kUnknown };

// Takes the lock if it is free. It is held until the descriptor is closed, also by the end of the process.
// Two descriptors of one process exclude each other too. Unknown where the file system has no locks.
Lock try_lock(int descriptor);

}  // namespace tilework
