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
// Saves of one target at the same time, and what killed ones left: more than anyone has, few enough to look
// at all.
constexpr int kMaxNames = 32;
// The dot in front and a dot with two digits.
constexpr size_t kAroundStem = 1 + 3 + sizeof(kSuffix) - 1;
constexpr size_t kHashDigits = 16;
// Where the file system does not say: what all common ones allow.
constexpr size_t kUsualNameBytes = 255;

// Never destroyed: they are needed until the process is gone.
struct Names {
  std::mutex mutex;
  std::set<std::string> paths;
};

Names& names() {
  static Names* instance = new Names;
  return *instance;
}

// Set when the system refused a name to a file that had none; the next files have one from the start.
std::atomic<bool> names_are_refused{false};

std::string join_path(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

// FNV-1a, in hexadecimal digits.
std::string hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  std::string digits;
  for (size_t i = 0; i < kHashDigits; ++i) digits += "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
  return digits;
}

// A long name is cut, and its hash keeps it apart from others with the same beginning.
std::string stem_of(const std::string& folder, const std::string& target) {
  const long limit = pathconf(folder.c_str(), _PC_NAME_MAX);
  const size_t bytes = limit > 0 ? static_cast<size_t>(limit) : kUsualNameBytes;
  if (target.size() + kAroundStem <= bytes) return target;
  const size_t around = kAroundStem + 1 + kHashDigits;
  size_t length = bytes > around ? std::min(bytes - around, target.size()) : 0;
  // Some file systems refuse names with half a character.
  while (length > 0 && (static_cast<uint8_t>(target[length]) & 0xC0) == 0x80) --length;
  return target.substr(0, length) + "." + hash_of(target);
}

enum class Lock { kTaken, kBusy, kUnknown };

// Held until the descriptor is closed, by whatever ends the process too. Unknown where the file system has no
// locks.
Lock take_lock(int descriptor) {
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? Lock::kBusy : Lock::kUnknown;
  }
  return Lock::kTaken;
}

// Whether the path is a name of the open file, and its only one.
bool is_only_name(const std::string& path, int descriptor) {
  struct stat by_name {};
  struct stat by_descriptor {};
  return lstat(path.c_str(), &by_name) == 0 && fstat(descriptor, &by_descriptor) == 0 &&
         by_name.st_dev == by_descriptor.st_dev && by_name.st_ino == by_descriptor.st_ino &&
         by_name.st_nlink == 1;
}

// A plain file of this user under a single name: what a save of ours may have left.
bool may_be_ours(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
         status.st_nlink == 1;
}

void remove_if_abandoned(const std::string& path) {
  if (!may_be_ours(path)) return;
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  // For writing where permissions allow: network file systems lock no others.
  int descriptor = open(path.c_str(), O_RDWR | kFlags);
  if (descriptor < 0) descriptor = open(path.c_str(), O_RDONLY | kFlags);
  if (descriptor < 0) return;
  // The name once more, under the lock: meanwhile its owner may have committed, and another save taken the
  // name.
  if (take_lock(descriptor) == Lock::kTaken && is_only_name(path, descriptor)) unlink(path.c_str());
  close(descriptor);
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& folder, const std::string& target, mode_t mode,
                             const std::string& asked)
    : folder_(folder), target_(target), asked_(asked), stem_(stem_of(folder, target)) {
  // Before anything is reserved: what was left may fill the disk.
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
  // A failure of any kind is found again, and reported, by the attempt with a name.
  const int descriptor = open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  if (descriptor < 0) return;
  // Without /proc it could never get a name.
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
    // Another save may have come between: it saw a file without a lock, and removes it.
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
    // A security module or a file system that gives no names; a folder that is gone is found by the copy.
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
  // Only a name that is still ours: at the end of the process it may be gone already, and taken by someone
  // else.
  if (names().paths.erase(path_) > 0) unlink(path_.c_str());
}

void TemporaryFile::remove_all_names() {
  const std::lock_guard lock(names().mutex);
  for (const std::string& path : names().paths) unlink(path.c_str());
  names().paths.clear();
}

}  // namespace tilework
