#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "error.h"
#include "io/file_identity.h"
#include "io/folder.h"

namespace tilework {
namespace {

FileIdentity identity_from(const struct stat& status) {
#ifdef __APPLE__
  const timespec& time = status.st_mtimespec;
#else
  const timespec& time = status.st_mtim;
#endif
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino),
          static_cast<int64_t>(status.st_size),
          static_cast<int64_t>(time.tv_sec) * kNanoseconds + static_cast<int64_t>(time.tv_nsec)};
}

// After a failed look-up: returns if there is no such file below the folder. Errors: any other cause.
void expect_absent(const std::string& path) {
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV) return;
  throw system_error(errno, "fstatat", path);
}

}  // namespace

FileIdentity identity_of(int descriptor, const std::string& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) throw system_error(errno, "fstat", path);
  return identity_from(status);
}

bool remove_below(const FolderPlace& folder, const std::string& name,
                  const std::optional<FileIdentity>& identity) {
  const std::string path = folder.path_of(name);
  const auto below = Folder::open(folder, path)->folder_below(folder_of(name));
  if (below == nullptr) {
    expect_absent(path);
    return false;
  }
  const std::string last = name_of_path(name);
  struct stat status {};
  if (fstatat(below->descriptor(), last.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    expect_absent(path);
    return false;
  }
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1) return false;
  if (identity && identity_from(status) != *identity) return false;
  if (unlinkat(below->descriptor(), last.c_str(), 0) != 0) throw system_error(errno, "unlink", path);
  return true;
}

}  // namespace tilework
