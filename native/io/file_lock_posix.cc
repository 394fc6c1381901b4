#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "error.h"
#include "io/file_lock.h"

namespace tilework {

Lock try_lock(int descriptor) {
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? Lock::kBusy : Lock::kUnknown;
  }
  return Lock::kTaken;
}

Lock FolderLock::try_take(const FolderPlace& folder, std::unique_ptr<FolderLock>& lock) {
  int descriptor = -1;
  try {
    // A lock needs a descriptor of its own, and one that can be read.
    descriptor =
        openat(Folder::open(folder, folder.path)->descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } catch (const Error&) {
    return Lock::kUnknown;
  }
  if (descriptor < 0) return Lock::kUnknown;
  std::unique_ptr<FolderLock> opened(new FolderLock(descriptor));
  const Lock state = try_lock(descriptor);
  if (state == Lock::kTaken) lock = std::move(opened);
  return state;
}

}  // namespace tilework
