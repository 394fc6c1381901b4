#include <unistd.h>

#include <cerrno>
#include <vector>

#include "io/file_attributes.h"

#ifdef __linux__
#include <sys/xattr.h>
#endif
#ifdef __APPLE__
#include <copyfile.h>
#endif

#include "error.h"

namespace tilework {
namespace {

#ifdef __linux__
// They describe the old bytes, or give a program rights.
bool stays_behind(const std::string& name, bool keeps_list) {
  if (name == "security.ima" || name == "security.evm" || name == "security.capability") return true;
  return !keeps_list && name == "system.posix_acl_access";
}

// An attribute that the process may not read or set, and any that the file system refuses, stays behind.
void copy_extended(int from, int to, bool keeps_list) {
  const ssize_t length = flistxattr(from, nullptr, 0);
  if (length <= 0) return;
  std::vector<char> names(static_cast<size_t>(length));
  const ssize_t listed = flistxattr(from, names.data(), names.size());
  std::vector<char> value;
  for (ssize_t at = 0; at < listed;) {
    const std::string name = names.data() + at;
    at += static_cast<ssize_t>(name.size()) + 1;
    if (stays_behind(name, keeps_list)) continue;
    const ssize_t size = fgetxattr(from, name.c_str(), nullptr, 0);
    if (size < 0) continue;
    value.resize(static_cast<size_t>(size));
    const ssize_t got = fgetxattr(from, name.c_str(), value.data(), value.size());
    if (got >= 0) (void)fsetxattr(to, name.c_str(), value.data(), static_cast<size_t>(got), 0);
  }
}
#elif defined(__APPLE__)
void copy_extended(int from, int to, bool keeps_list) {
  (void)fcopyfile(from, to, nullptr, keeps_list ? COPYFILE_ACL | COPYFILE_XATTR : COPYFILE_XATTR);
}
#else
void copy_extended(int, int, bool) {}
#endif

// The permissions for a file whose owner or group is another than before. Set-ID bits would give the new
// owner's rights, and the group's permissions were meant for another group.
mode_t narrowed(mode_t mode, bool keeps_owner, bool keeps_group) {
  if (!keeps_owner || !keeps_group) mode &= 0777;
  if (!keeps_group) mode &= ~mode_t{070} | ((mode & 07) << 3);
  return mode;
}

}  // namespace

void hand_down_attributes(int old_descriptor, const struct stat& old, int descriptor,
                          const std::string& asked) {
  struct stat now {};
  if (fstat(descriptor, &now) != 0) throw system_error(errno, "fstat", asked);
  const bool keeps_group =
      now.st_gid == old.st_gid || fchown(descriptor, static_cast<uid_t>(-1), old.st_gid) == 0;
  // Attributes before the owner: only the owner of a file may set them.
  if (old_descriptor >= 0) copy_extended(old_descriptor, descriptor, keeps_group);
  const bool keeps_owner =
      now.st_uid == old.st_uid || fchown(descriptor, old.st_uid, static_cast<gid_t>(-1)) == 0;
  // Last, since a change of the owner clears the set-ID bits.
  const mode_t mode = narrowed(old.st_mode & 07777, keeps_owner, keeps_group);
  if (fchmod(descriptor, mode) == 0) return;
  // File systems without permissions (FAT, some network shares) refuse; then there is nothing to keep.
  if (errno != EPERM && errno != ENOTSUP && errno != ENOSYS) throw system_error(errno, "fchmod", asked);
}

}  // namespace tilework
