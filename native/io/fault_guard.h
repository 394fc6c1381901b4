// Keeps the process alive when a mapped file loses bytes under its readers. A read of a page that is behind
// the new end of a truncated file, or that the disk cannot give, is a SIGBUS, which kills. A guard puts zeros
// under such a read and remembers it; the reader asks afterwards.
//
// The handler is installed with the first guard and stays. It acts on guarded ranges only; every other SIGBUS
// goes to the handler that was there before, or to the system's default. A handler that is installed later
// has to pass the signal on in its turn.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilework {

// An entry of the handler's table.
struct GuardedRange;

class FaultGuard {
 public:
  // Guards the pages of the map [data, data + size) until destruction, which must come before munmap. Errors:
  // a system error if the handler cannot be installed.
  FaultGuard(uint8_t* data, size_t size);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  // Whether any read was answered with zeros. Any thread.
  bool faulted() const;

 private:
  GuardedRange* range_;
};

}  // namespace tilework
