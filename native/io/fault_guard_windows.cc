// Windows lets nobody truncate a file that is mapped, and nothing can be put under a view of a file that went
// away with its disk. Guarded files are therefore read and not mapped (input_file_windows.cc), and no guard
// is ever made.
#include "io/fault_guard.h"

namespace tilework {

FaultGuard::FaultGuard(uint8_t*, size_t) : range_(nullptr) {}
FaultGuard::~FaultGuard() = default;
bool FaultGuard::faulted() const { return false; }

}  // namespace tilework
