#include <fcntl.h>
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

Lock FolderLock::try_take(const std::string& folder, std::unique_ptr<FolderLock>& lock) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return Lock::kUnknown;
  std::unique_ptr<FolderLock> opened(new FolderLock(descriptor));
  const Lock state = try_lock(descriptor);
  if (state == Lock::kTaken) lock = std::move(opened);
  return state;
}

}  // namespace tilework
