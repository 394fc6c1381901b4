#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "error.h"
#include "io/descriptor_io.h"
#include "io/file_attributes.h"
#include "io/file_lock.h"
#include "io/temporary_file.h"
#include "io/temporary_name.h"

namespace tilework {
namespace {

// Limit of all common file systems, used where the file system does not report its own.
constexpr size_t kUsualNameBytes = 255;

// Never destroyed: needed until the process is gone.
struct Names {
  std::mutex mutex;
  // Descriptor of the folder, which its temporary file holds, and name.
  std::set<std::pair<int, std::string>> of_folders;
};

Names& names() {
  static Names* instance = new Names;
  return *instance;
}

bool is_failure_of_disk(int number) {
  return number == ENOSPC || number == EDQUOT || number == EIO || number == EROFS;
}

// Set once the system refused to link an unnamed file; later files have a name from the start.
std::atomic<bool> names_are_refused{false};

std::string stem_of(const Folder& folder, const std::string& target) {
  const long limit = fpathconf(folder.descriptor(), _PC_NAME_MAX);
  return temporary_stem(target, limit > 0 ? static_cast<size_t>(limit) : kUsualNameBytes);
}

bool status_at(const Folder& folder, const std::string& name, struct stat& status) {
  return fstatat(folder.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

// Whether the open file has this name and no other; absent, with errno, where the system does not tell.
std::optional<bool> is_only_name(const Folder& folder, const std::string& name, int descriptor) {
  struct stat by_name {};
  struct stat by_descriptor {};
  if (fstat(descriptor, &by_descriptor) != 0) return std::nullopt;
  if (!status_at(folder, name, by_name)) return errno == ENOENT ? std::optional(false) : std::nullopt;
  return by_name.st_dev == by_descriptor.st_dev && by_name.st_ino == by_descriptor.st_ino &&
         by_name.st_nlink == 1;
}

// The owner that a save gives its file: that of the target, where it may; else the user of this process.
uid_t owner_of(const Folder& folder, const std::string& target) {
  struct stat status {};
  return status_at(folder, target, status) && S_ISREG(status.st_mode) ? status.st_uid : geteuid();
}

// A regular file of this user or the target's owner, with a single name: possibly the leftover of a killed
// save.
bool may_be_ours(const Folder& folder, const std::string& name, uid_t owner) {
  struct stat status {};
  return status_at(folder, name, status) && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
         (status.st_uid == geteuid() || status.st_uid == owner);
}

void remove_if_abandoned(const Folder& folder, const std::string& name, uid_t owner) {
  if (!may_be_ours(folder, name, owner)) return;
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  // Opened for writing where permissions allow: network file systems lock nothing else.
  int descriptor = openat(folder.descriptor(), name.c_str(), O_RDWR | kFlags);
  if (descriptor < 0) descriptor = openat(folder.descriptor(), name.c_str(), O_RDONLY | kFlags);
  if (descriptor < 0) return;
  // Check the name again under the lock: its owner may have committed in between and another save taken the
  // name.
  if (try_lock(descriptor) == Lock::kTaken && is_only_name(folder, name, descriptor).value_or(false)) {
    unlinkat(folder.descriptor(), name.c_str(), 0);
  }
  close(descriptor);
}

}  // namespace

TemporaryFile::TemporaryFile(std::shared_ptr<const Folder> folder, const std::string& target, unsigned mode,
                             const std::string& asked)
    : folder_(std::move(folder)), target_(target), asked_(asked), stem_(stem_of(*folder_, target)) {
  // Before disk space is reserved: leftovers may fill the disk.
  remove_abandoned();
  if (!names_are_refused) open_without_name(mode);
  if (descriptor_ < 0) open_with_name(mode);
}

TemporaryFile::~TemporaryFile() {
  remove_name();
  if (descriptor_ >= 0) close(descriptor_);
}

std::vector<std::string> TemporaryFile::all_names(const Folder& folder, const std::string& target) {
  return all_temporary_names(stem_of(folder, target));
}

void TemporaryFile::remove_abandoned() const {
  const uid_t owner = owner_of(*folder_, target_);
  for (int number = 0; number < kMaxTemporaryNames; ++number) {
    remove_if_abandoned(*folder_, temporary_name(stem_, number), owner);
  }
}

#ifdef O_TMPFILE
namespace {

// The only path to a file without a name.
std::string descriptor_path(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

}  // namespace

void TemporaryFile::open_without_name(unsigned mode) {
  // Any failure shows up again in the attempt with a name, which reports it.
  const int descriptor = openat(folder_->descriptor(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  if (descriptor < 0) return;
  // Without /proc the file could never get a name.
  if (access(descriptor_path(descriptor).c_str(), F_OK) != 0) {
    close(descriptor);
    return;
  }
  try_lock(descriptor);
  descriptor_ = descriptor;
}

bool TemporaryFile::link_name(const std::string& name) {
  const std::string link = descriptor_path(descriptor_);
  return linkat(AT_FDCWD, link.c_str(), folder_->descriptor(), name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}
#else
void TemporaryFile::open_without_name(unsigned) {}

bool TemporaryFile::link_name(const std::string&) {
  errno = ENOSYS;
  return false;
}
#endif

void TemporaryFile::open_with_name(unsigned mode) {
  for (int number = 0; number < kMaxTemporaryNames; ++number) {
    const std::string name = temporary_name(stem_, number);
    const std::lock_guard lock(names().mutex);
    constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int descriptor = openat(folder_->descriptor(), name.c_str(), kFlags, mode);
    if (descriptor < 0 && (errno == EEXIST || errno == EINTR)) continue;
    if (descriptor < 0) throw system_error(errno, "open", asked_);
    // Another save may have removed the name in between, because it saw a file without a lock.
    const bool is_locked = try_lock(descriptor) != Lock::kBusy;
    const std::optional<bool> is_ours = is_locked ? is_only_name(*folder_, name, descriptor) : false;
    if (is_ours == true) {
      descriptor_ = descriptor;
      name_ = name;
      names().of_folders.insert({folder_->descriptor(), name_});
      return;
    }
    const int number_of_error = errno;
    // Almost certainly the file that was just made, and nobody else would remove it.
    if (!is_ours) unlinkat(folder_->descriptor(), name.c_str(), 0);
    close(descriptor);
    if (!is_ours) throw system_error(number_of_error, "fstat", asked_);
  }
  throw system_error(EEXIST, "open", asked_);
}

void TemporaryFile::take_name() {
  if (!name_.empty()) return;
  for (int number = 0; number < kMaxTemporaryNames; ++number) {
    const std::string name = temporary_name(stem_, number);
    {
      const std::lock_guard lock(names().mutex);
      if (link_name(name)) {
        name_ = name;
        names().of_folders.insert({folder_->descriptor(), name_});
        return;
      }
    }
    if (errno == EEXIST) continue;
    if (is_failure_of_disk(errno)) throw system_error(errno, "linkat", asked_);
    // A security module or a file system refuses to link; if the folder is gone, the copy finds out.
    return copy_under_a_name();
  }
  throw system_error(EEXIST, "linkat", asked_);
}

void TemporaryFile::copy_under_a_name() {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) throw system_error(errno, "fstat", asked_);
  const int unnamed = descriptor_;
  descriptor_ = -1;
  try {
    open_with_name(status.st_mode & 0700);
    hand_down_attributes(unnamed, status, descriptor_, asked_);
    const auto size = static_cast<int64_t>(status.st_size);
    if (copy_fully({unnamed, 0, asked_}, {descriptor_, 0, asked_}, size) != size) {
      throw system_error(EIO, "pread", asked_);
    }
    sync_file(descriptor_, asked_);
    names_are_refused = true;
  } catch (...) {
    close(unnamed);
    throw;
  }
  close(unnamed);
}

void TemporaryFile::replace_target() {
  const std::lock_guard lock(names().mutex);
  rename_to_target();
}

void TemporaryFile::take_target_name() {
  // Straight from no name to the final one: a kill leaves nothing in between.
  if (name_.empty() && link_name(target_)) return;
  if (name_.empty() && (errno == EEXIST || is_failure_of_disk(errno)))
    throw system_error(errno, "linkat", asked_);
  take_name();
  const std::lock_guard lock(names().mutex);
  const int folder = folder_->descriptor();
  if (linkat(folder, name_.c_str(), folder, target_.c_str(), 0) == 0) {
    // With two names it would be refused as external data.
    if (unlinkat(folder, name_.c_str(), 0) != 0) {
      const int number = errno;
      unlinkat(folder, target_.c_str(), 0);
      throw system_error(number, "unlink", asked_);
    }
    names().of_folders.erase({folder, name_});
    name_.clear();
    return;
  }
  if (errno == EEXIST || is_failure_of_disk(errno)) throw system_error(errno, "linkat", asked_);
  // A file system without hard links. Another save may take the name between the question and the rename.
  struct stat status {};
  if (status_at(*folder_, target_, status)) throw system_error(EEXIST, "rename", asked_);
  rename_to_target();
}

void TemporaryFile::rename_to_target() {
  const int folder = folder_->descriptor();
  if (renameat(folder, name_.c_str(), folder, target_.c_str()) != 0)
    throw system_error(errno, "rename", asked_);
  names().of_folders.erase({folder, name_});
  name_.clear();
}

void TemporaryFile::remove_name() {
  const std::lock_guard lock(names().mutex);
  const int folder = folder_->descriptor();
  // Only a name that is still ours: at process exit it may be removed already and taken by another process.
  if (names().of_folders.erase({folder, name_}) > 0) unlinkat(folder, name_.c_str(), 0);
}

void TemporaryFile::remove_all_names() {
  const std::lock_guard lock(names().mutex);
  for (const auto& [folder, name] : names().of_folders) unlinkat(folder, name.c_str(), 0);
  names().of_folders.clear();
}

}  // namespace tilework
