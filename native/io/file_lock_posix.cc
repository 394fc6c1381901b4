#include <sys/file.h>

#include <cerrno>

#include "io/file_lock.h"

namespace tilework {

Lock try_lock(int descriptor) {
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? Lock::kBusy : Lock::kUnknown;
  }
  return Lock::kTaken;
}

}  // namespace tilework
