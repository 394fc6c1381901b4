// Keeps the process alive when a mapped file is truncated while it is read. Reading a page behind the new end
// of the file, or a page that the disk cannot deliver, raises SIGBUS, which kills the process. A guard maps
// zeros under the faulting read and records the fault; the reader checks it afterwards.
//
// The handler is installed with the first guard and stays. It handles faults in guarded ranges only and
// passes every other SIGBUS to the handler that was installed before, or to the default action. A handler
// that is installed later must pass the signal on in the same way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilework {

// Entry of the handler's table.
struct GuardedRange;

class FaultGuard {
 public:
  // Guards the pages of the mapping [data, data + size) until destruction, which must come before munmap.
  // Errors: a system error if the handler cannot be installed.
  FaultGuard(uint8_t* data, size_t size);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  // Whether any read returned zeros in place of the file's bytes. Any thread.
  bool faulted() const;

 private:
  GuardedRange* range_;
};

}  // namespace tilework
