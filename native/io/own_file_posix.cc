#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/own_file.h"

namespace tilework {

int open_own_file(const Folder& folder, const std::string& name, int64_t& size) {
  int descriptor = -1;
  do {
    // O_NONBLOCK: a pipe without a writer would wait for one.
    descriptor = openat(folder.descriptor(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return kNoFile;
  struct stat status {};
  const bool is_own = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
                      status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  size = status.st_size;
  if (is_own) return descriptor;
  close(descriptor);
  return kNoFile;
}

}  // namespace tilework
