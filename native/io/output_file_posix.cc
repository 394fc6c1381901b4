#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <vector>

#include "error.h"
#include "io/checked_math.h"
#include "io/output_file.h"

namespace tilework {
namespace {

// Linux and macOS refuse or cut single calls near 2 GiB.
constexpr int64_t kMaxCallBytes = int64_t{1} << 30;
constexpr size_t kCopyBufferBytes = size_t{1} << 20;
// As many links as Linux follows before it answers ELOOP.
constexpr int kMaxLinks = 40;
// File names have at most 255 bytes; the rest of the temporary's name needs 31.
constexpr size_t kMaxNamePart = 200;
constexpr int kMaxNameAttempts = 100;

// Never destroyed: it is needed until the process is gone.
struct Temporaries {
  std::mutex mutex;
  std::set<std::string> paths;
};

Temporaries& temporaries() {
  static Temporaries* instance = new Temporaries;
  return *instance;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// The path that a chain of symbolic links ends at; it need not exist.
std::string follow_links(std::string path) {
  const std::string asked = path;
  for (int i = 0; i < kMaxLinks; ++i) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
    char link[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), link, sizeof(link));
    if (length < 0) throw system_error(errno, "readlink", path);
    const std::string next(link, static_cast<size_t>(length));
    path = next.starts_with('/') ? next : folder_of(path) + "/" + next;
  }
  throw system_error(ELOOP, "readlink", asked);
}

std::string absolute_folder(const std::string& folder) {
  char resolved[PATH_MAX];
  if (realpath(folder.c_str(), resolved) == nullptr) throw system_error(errno, "realpath", folder);
  return resolved;
}

std::string join_path(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

std::string random_name(const std::string& name) {
  size_t length = std::min(name.size(), kMaxNamePart);
  // Some file systems refuse names with half a character.
  while (length < name.size() && length > 0 && (static_cast<uint8_t>(name[length]) & 0xC0) == 0x80) --length;
  static constexpr char kDigits[] = "0123456789abcdef";
  // Not std::random_device: it would tie the addon to a very new C library.
  uint8_t random[8] = {};
  if (getentropy(random, sizeof(random)) != 0) throw system_error(errno, "getentropy", name);
  std::string temporary = ".";
  temporary.append(name, 0, length).push_back('.');
  for (uint8_t byte : random) (temporary += kDigits[byte >> 4]) += kDigits[byte & 15];
  return temporary += ".tilework-tmp";
}

void write_all(int descriptor, const uint8_t* bytes, int64_t size, int64_t position,
               const std::string& path) {
  while (size > 0) {
    const auto chunk = static_cast<size_t>(std::min(size, kMaxCallBytes));
    const ssize_t written = pwrite(descriptor, bytes, chunk, static_cast<off_t>(position));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error(errno, "pwrite", path);
    bytes += written;
    position += written;
    size -= written;
  }
}

int sync_descriptor(int descriptor) {
#ifdef __APPLE__
  // fsync of macOS stops at the drive's cache.
  if (fcntl(descriptor, F_FULLFSYNC) == 0) return 0;
#endif
  return fsync(descriptor);
}

// Makes the rename itself durable. Some file systems cannot sync a folder; then the rename is as durable as
// they make it.
void sync_folder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (descriptor < 0) return;
  const int failed = fsync(descriptor) != 0 ? errno : 0;
  close(descriptor);
  if (failed == EIO || failed == ENOSPC) throw system_error(failed, "fsync", folder);
}

#ifdef __linux__
// Lets the kernel, or the file system, move the bytes. Returns how many; the caller copies the rest plainly.
int64_t copy_in_kernel(int from, int64_t start, int64_t size, int to, int64_t position) {
  off_t source = static_cast<off_t>(start);
  off_t destination = static_cast<off_t>(position);
  int64_t copied = 0;
  while (copied < size) {
    const auto chunk = static_cast<size_t>(std::min(size - copied, kMaxCallBytes));
    const ssize_t count = copy_file_range(from, &source, to, &destination, chunk, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    copied += count;
  }
  return copied;
}
#else
int64_t copy_in_kernel(int, int64_t, int64_t, int, int64_t) { return 0; }
#endif

}  // namespace

std::shared_ptr<OutputFile> OutputFile::create(const std::string& path, int64_t byte_length) {
  const std::string target = follow_links(path);
  const std::string name = name_of(target);
  if (name.empty() || name == "." || name == "..")
    throw system_error(path.empty() ? ENOENT : EISDIR, "open", path);
  std::shared_ptr<OutputFile> file(new OutputFile);
  struct stat status {};
  if (stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) throw system_error(EISDIR, "open", path);
    if (!S_ISREG(status.st_mode)) {
      throw Error("ERR_ARGUMENT", "'" + path + "' is no regular file and cannot be replaced.", "open", path);
    }
    file->old_mode_ = static_cast<int>(status.st_mode & 0777);
  }
  // Absolute, so that a change of the working folder between now and the commit does no harm.
  file->folder_ = absolute_folder(folder_of(target));
  file->target_ = join_path(file->folder_, name);
  file->create_temporary(name);
  file->reserve(byte_length);
  return file;
}

void OutputFile::create_temporary(const std::string& name) {
  // Never wider than the old target, not even before its exact permissions are set.
  const mode_t mode = old_mode_ < 0 ? 0666 : static_cast<mode_t>(old_mode_ | 0200);
  for (int i = 0; i < kMaxNameAttempts && descriptor_ < 0; ++i) {
    temporary_ = join_path(folder_, random_name(name));
    const std::lock_guard lock(temporaries().mutex);
    descriptor_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor_ < 0 && errno != EEXIST) throw system_error(errno, "open", temporary_);
    if (descriptor_ >= 0) temporaries().paths.insert(temporary_);
  }
  if (descriptor_ < 0) throw system_error(EEXIST, "open", temporary_);
  if (old_mode_ < 0 || fchmod(descriptor_, static_cast<mode_t>(old_mode_)) == 0) return;
  // File systems without permissions (FAT, some network shares) refuse; there are none to hand down then.
  if (errno != EPERM && errno != ENOTSUP && errno != ENOSYS) throw system_error(errno, "fchmod", temporary_);
}

void OutputFile::reserve(int64_t byte_length) {
  if (byte_length == 0) return;
#ifdef __linux__
  while (fallocate(descriptor_, 0, 0, static_cast<off_t>(byte_length)) != 0) {
    if (errno == EINTR) continue;
    // A file system that cannot reserve; then a full disk is found while writing.
    if (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS) break;
    throw system_error(errno, "fallocate", temporary_);
  }
#endif
  if (ftruncate(descriptor_, static_cast<off_t>(byte_length)) != 0) {
    throw system_error(errno, "ftruncate", temporary_);
  }
}

void OutputFile::remove_live_temporaries() {
  const std::lock_guard lock(temporaries().mutex);
  for (const std::string& path : temporaries().paths) unlink(path.c_str());
  temporaries().paths.clear();
}

OutputFile::~OutputFile() {
  abort();
  if (descriptor_ >= 0) close(descriptor_);
}

void OutputFile::begin_write() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen)
    throw Error("ERR_CLOSED", "The output file was committed or aborted.", {}, target_);
  ++pending_writes_;
}

void OutputFile::end_write(bool succeeded) {
  const std::lock_guard lock(mutex_);
  --pending_writes_;
  write_failed_ = write_failed_ || !succeeded;
  writes_ended_.notify_all();
}

void OutputFile::check_not_aborted() const {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kAborted) throw Error("ERR_CLOSED", "The output file was aborted.", {}, target_);
}

void OutputFile::write(const uint8_t* bytes, int64_t size, int64_t position) {
  check_not_aborted();
  checked_add(position, size, "The end of a write");
  write_all(descriptor_, bytes, size, position, temporary_);
}

void OutputFile::copy_from(const InputFile& file, int64_t start, int64_t end, int64_t position) {
  check_not_aborted();
  checked_add(position, end - start, "The end of a copy");
  const auto source = file.descriptor();
  if (source == nullptr)
    throw Error("ERR_CLOSED", "'" + file.path() + "' was closed before it was copied.", {}, file.path());
  file.verify_unchanged();
  int64_t copied = copy_in_kernel(source->number(), start, end - start, descriptor_, position);
  std::vector<uint8_t> buffer(std::min(kCopyBufferBytes, static_cast<size_t>(end - start - copied)));
  while (copied < end - start) {
    const auto chunk = std::min(buffer.size(), static_cast<size_t>(end - start - copied));
    const ssize_t count = pread(source->number(), buffer.data(), chunk, static_cast<off_t>(start + copied));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, "pread", file.path());
    if (count == 0) {
      throw Error("ERR_FILE_CHANGED", "'" + file.path() + "' was truncated while it was copied.", {},
                  file.path());
    }
    write_all(descriptor_, buffer.data(), count, position + copied, temporary_);
    copied += count;
  }
  file.verify_unchanged();
}

void OutputFile::begin_commit() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen)
    throw Error("ERR_CLOSED", "The output file was committed or aborted.", {}, target_);
  state_ = State::kCommitting;
}

void OutputFile::commit() {
  try {
    finish_writes();
    if (sync_descriptor(descriptor_) != 0) throw system_error(errno, "fsync", temporary_);
    replace_target();
  } catch (...) {
    abort();
    throw;
  }
  sync_folder(folder_);
}

void OutputFile::finish_writes() {
  std::unique_lock lock(mutex_);
  writes_ended_.wait(lock, [this] { return pending_writes_ == 0; });
  if (write_failed_) {
    throw Error("ERR_IO", "A write to '" + target_ + "' failed, so it was not replaced.", {}, target_);
  }
}

void OutputFile::replace_target() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kAborted) throw Error("ERR_CLOSED", "The output file was aborted.", {}, target_);
  const std::lock_guard names(temporaries().mutex);
  if (rename(temporary_.c_str(), target_.c_str()) != 0) throw system_error(errno, "rename", target_);
  temporaries().paths.erase(temporary_);
  state_ = State::kCommitted;
}

void OutputFile::abort() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kCommitted || state_ == State::kAborted) return;
  state_ = State::kAborted;
  const std::lock_guard names(temporaries().mutex);
  // Only a name that is still ours: one that never was created, or was removed already, may belong to someone
  // else.
  if (temporaries().paths.erase(temporary_) > 0) unlink(temporary_.c_str());
}

}  // namespace tilework
