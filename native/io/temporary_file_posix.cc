#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <set>

#include "error.h"
#include "io/descriptor_io.h"
#include "io/temporary_file.h"

namespace tilework {
namespace {

constexpr char kSuffix[] = ".tilework-tmp";
// Concurrent saves of one target plus the leftovers of killed ones: more than anyone has, few enough to try
// all.
constexpr int kMaxNames = 32;
// The leading dot, then a dot with two digits, then the suffix.
constexpr size_t kAroundStem = 1 + 3 + sizeof(kSuffix) - 1;
constexpr size_t kHashDigits = 16;
// Limit of all common file systems, used where the file system does not report its own.
constexpr size_t kUsualNameBytes = 255;

// Never destroyed: needed until the process is gone.
struct Names {
  std::mutex mutex;
  std::set<std::string> paths;
};

Names& names() {
  static Names* instance = new Names;
  return *instance;
}

// Set once the system refused to link an unnamed file; later files have a name from the start.
std::atomic<bool> names_are_refused{false};

std::string join_path(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

// FNV-1a in hexadecimal digits.
std::string hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  std::string digits;
  for (size_t i = 0; i < kHashDigits; ++i) digits += "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
  return digits;
}

// A long name is cut; its hash distinguishes it from other names with the same start.
std::string stem_of(const std::string& folder, const std::string& target) {
  const long limit = pathconf(folder.c_str(), _PC_NAME_MAX);
  const size_t bytes = limit > 0 ? static_cast<size_t>(limit) : kUsualNameBytes;
  if (target.size() + kAroundStem <= bytes) return target;
  const size_t around = kAroundStem + 1 + kHashDigits;
  size_t length = bytes > around ? std::min(bytes - around, target.size()) : 0;
  // Some file systems refuse names that end inside a UTF-8 character.
  while (length > 0 && (static_cast<uint8_t>(target[length]) & 0xC0) == 0x80) --length;
  return target.substr(0, length) + "." + hash_of(target);
}

enum class Lock { kTaken, kBusy, kUnknown };

// The lock is held until the descriptor is closed, also by the end of the process. Unknown where the file
// system has no locks.
Lock take_lock(int descriptor) {
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? Lock::kBusy : Lock::kUnknown;
  }
  return Lock::kTaken;
}

// Whether the path is the only name of the open file.
bool is_only_name(const std::string& path, int descriptor) {
  struct stat by_name {};
  struct stat by_descriptor {};
  return lstat(path.c_str(), &by_name) == 0 && fstat(descriptor, &by_descriptor) == 0 &&
         by_name.st_dev == by_descriptor.st_dev && by_name.st_ino == by_descriptor.st_ino &&
         by_name.st_nlink == 1;
}

// A regular file of this user with a single name: possibly the leftover of a killed save.
bool may_be_ours(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
         status.st_nlink == 1;
}

void remove_if_abandoned(const std::string& path) {
  if (!may_be_ours(path)) return;
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  // Opened for writing where permissions allow: network file systems lock nothing else.
  int descriptor = open(path.c_str(), O_RDWR | kFlags);
  if (descriptor < 0) descriptor = open(path.c_str(), O_RDONLY | kFlags);
  if (descriptor < 0) return;
  // Check the name again under the lock: its owner may have committed in between and another save taken the
  // name.
  if (take_lock(descriptor) == Lock::kTaken && is_only_name(path, descriptor)) unlink(path.c_str());
  close(descriptor);
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& folder, const std::string& target, mode_t mode,
                             const std::string& asked)
    : folder_(folder), target_(target), asked_(asked), stem_(stem_of(folder, target)) {
  // Before disk space is reserved: leftovers may fill the disk.
  remove_abandoned();
  if (!names_are_refused) open_without_name(mode);
  if (descriptor_ < 0) open_with_name(mode);
}

TemporaryFile::~TemporaryFile() {
  remove_name();
  if (descriptor_ >= 0) close(descriptor_);
}

std::string TemporaryFile::numbered_path(int number) const {
  const std::string digits = number == 0 ? "" : "." + std::to_string(number);
  return join_path(folder_, "." + stem_ + digits + kSuffix);
}

void TemporaryFile::remove_abandoned() const {
  for (int number = 0; number < kMaxNames; ++number) remove_if_abandoned(numbered_path(number));
}

#ifdef O_TMPFILE
void TemporaryFile::open_without_name(mode_t mode) {
  // Any failure shows up again in the attempt with a name, which reports it.
  const int descriptor = open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  if (descriptor < 0) return;
  // Without /proc the file could never get a name.
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (access(link.c_str(), F_OK) != 0) {
    close(descriptor);
    return;
  }
  take_lock(descriptor);
  descriptor_ = descriptor;
}

bool TemporaryFile::link_name(const std::string& path) {
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor_);
  const std::lock_guard lock(names().mutex);
  if (linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) return false;
  path_ = path;
  names().paths.insert(path_);
  return true;
}
#else
void TemporaryFile::open_without_name(mode_t) {}

bool TemporaryFile::link_name(const std::string&) {
  errno = ENOSYS;
  return false;
}
#endif

void TemporaryFile::open_with_name(mode_t mode) {
  for (int number = 0; number < kMaxNames; ++number) {
    const std::string path = numbered_path(number);
    const std::lock_guard lock(names().mutex);
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) throw system_error(errno, "open", asked_);
    // Another save may have removed the name in between, because it saw a file without a lock.
    if (take_lock(descriptor) != Lock::kBusy && is_only_name(path, descriptor)) {
      descriptor_ = descriptor;
      path_ = path;
      names().paths.insert(path_);
      return;
    }
    close(descriptor);
  }
  throw system_error(EEXIST, "open", asked_);
}

void TemporaryFile::take_name() {
  if (!path_.empty()) return;
  for (int number = 0; number < kMaxNames; ++number) {
    const std::string path = numbered_path(number);
    if (link_name(path)) return;
    if (errno == EEXIST) continue;
    if (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EROFS) {
      throw system_error(errno, "linkat", asked_);
    }
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
    open_with_name(status.st_mode & 0777);
    if (fchmod(descriptor_, status.st_mode & 0777) != 0) throw system_error(errno, "fchmod", asked_);
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
  const std::string target = join_path(folder_, target_);
  const std::lock_guard lock(names().mutex);
  if (rename(path_.c_str(), target.c_str()) != 0) throw system_error(errno, "rename", asked_);
  names().paths.erase(path_);
  path_.clear();
}

void TemporaryFile::remove_name() {
  const std::lock_guard lock(names().mutex);
  // Only a name that is still ours: at process exit it may be removed already and taken by another process.
  if (names().paths.erase(path_) > 0) unlink(path_.c_str());
}

void TemporaryFile::remove_all_names() {
  const std::lock_guard lock(names().mutex);
  for (const std::string& path : names().paths) unlink(path.c_str());
  names().paths.clear();
}

}  // namespace tilework
