#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "error.h"
#include "io/checked_math.h"
#include "io/descriptor_io.h"
#include "io/output_file.h"

namespace tilework {
namespace {

// Writeback is started after this many bytes: long enough for sequential disk writes, short enough to repeat
// often in a large file.
constexpr int64_t kWritebackBytes = int64_t{32} << 20;

// Linux follows this many symbolic links before it reports ELOOP.
constexpr int kMaxLinks = 40;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// End of a chain of symbolic links; the file need not exist.
std::string follow_links(const std::string& asked) {
  std::string path = asked;
  for (int i = 0; i < kMaxLinks; ++i) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
    char link[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), link, sizeof(link));
    if (length < 0) throw system_error(errno, "readlink", asked);
    const std::string next(link, static_cast<size_t>(length));
    path = next.starts_with('/') ? next : folder_of(path) + "/" + next;
  }
  throw system_error(ELOOP, "readlink", asked);
}

std::string absolute_folder(const std::string& folder, const std::string& asked) {
  char resolved[PATH_MAX];
  if (realpath(folder.c_str(), resolved) == nullptr) throw system_error(errno, "realpath", asked);
  return resolved;
}

// Permissions of the file that will be replaced; -1 if there is none.
int mode_of_target(const std::string& target, const std::string& asked) {
  struct stat status {};
  if (stat(target.c_str(), &status) != 0) {
    if (errno == ENOENT) return -1;
    throw system_error(errno, "stat", asked);
  }
  if (S_ISDIR(status.st_mode)) throw system_error(EISDIR, "open", asked);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kArgument, "'" + asked + "' is not a regular file and cannot be replaced.", asked);
  }
  return static_cast<int>(status.st_mode & 0777);
}

// Makes the rename durable. Some file systems cannot sync a folder; then the rename is as durable as they
// make it.
void sync_folder(const std::string& folder, const std::string& asked) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (descriptor < 0) return;
  const int failed = fsync(descriptor) != 0 ? errno : 0;
  close(descriptor);
  if (failed == EIO || failed == ENOSPC) throw system_error(failed, "fsync", asked);
}

}  // namespace

std::shared_ptr<OutputFile> OutputFile::create(const std::string& path, int64_t byte_length) {
  const std::string target = follow_links(path);
  const std::string name = name_of(target);
  if (name.empty() || name == "." || name == "..")
    throw system_error(path.empty() ? ENOENT : EISDIR, "open", path);
  const int old_mode = mode_of_target(target, path);
  std::shared_ptr<OutputFile> file(new OutputFile);
  file->path_ = path;
  // Absolute: the working directory may change before the commit.
  file->folder_ = absolute_folder(folder_of(target), path);
  // Never wider than the old target's, not even before the exact permissions are set.
  const mode_t mode = old_mode < 0 ? 0666 : static_cast<mode_t>(old_mode | 0200);
  file->temporary_ = std::make_shared<TemporaryFile>(file->folder_, name, mode, path);
  if (old_mode >= 0) file->hand_down_permissions(old_mode);
  if (byte_length > 0) file->reserve(byte_length);
  return file;
}

void OutputFile::hand_down_permissions(int old_mode) {
  if (fchmod(temporary_->descriptor(), static_cast<mode_t>(old_mode)) == 0) return;
  // File systems without permissions (FAT, some network shares) refuse; then there is nothing to keep.
  if (errno != EPERM && errno != ENOTSUP && errno != ENOSYS) throw system_error(errno, "fchmod", path_);
}

void OutputFile::reserve(int64_t byte_length) {
  const auto length = static_cast<off_t>(byte_length);
#ifdef __linux__
  while (fallocate(temporary_->descriptor(), 0, 0, length) != 0) {
    if (errno == EINTR) continue;
    // This file system cannot reserve; a full disk is then found while writing.
    if (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS) break;
    throw system_error(errno, "fallocate", path_);
  }
#endif
  if (ftruncate(temporary_->descriptor(), length) != 0) throw system_error(errno, "ftruncate", path_);
}

Error OutputFile::closed() const {
  return Error(ErrorCode::kClosed, "The output file '" + path_ + "' was already committed or aborted.",
               path_);
}

void OutputFile::begin_write() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) throw closed();
  if (pending_syncs_ > 0) {
    throw Error(ErrorCode::kClosed, "'" + path_ + "' cannot be written while a sync is pending.", path_);
  }
  ++pending_writes_;
  is_synced_ = false;
}

void OutputFile::end_write(bool succeeded) {
  const std::lock_guard lock(mutex_);
  --pending_writes_;
  write_failed_ = write_failed_ || !succeeded;
  writes_ended_.notify_all();
}

std::shared_ptr<TemporaryFile> OutputFile::opened() const {
  const std::lock_guard lock(mutex_);
  if (temporary_ == nullptr) throw closed();
  return temporary_;
}

void OutputFile::write(const uint8_t* bytes, int64_t size, int64_t position) {
  const std::shared_ptr<TemporaryFile> temporary = opened();
  checked_add(position, size, "The end of a write");
  write_fully({temporary->descriptor(), position, path_}, bytes, size);
  start_writeback(*temporary, size);
}

void OutputFile::copy_from(const InputFile& file, int64_t start, int64_t end, int64_t position) {
  const std::shared_ptr<TemporaryFile> temporary = opened();
  checked_add(position, end - start, "The end of a copy");
  const auto source = file.descriptor();
  if (source == nullptr) throw file.closed();
  file.verify_unchanged();
  const int64_t copied = copy_fully({source->number(), start, file.path()},
                                    {temporary->descriptor(), position, path_}, end - start);
  file.verify_unchanged();
  if (copied < end - start) throw file.ends_at(start + copied);
  start_writeback(*temporary, copied);
}

// Lets the disk work while the next bytes are computed, not only at the fsync. A hint: where the system has
// no such call or refuses it, the bytes are written later.
void OutputFile::start_writeback(const TemporaryFile& temporary, int64_t written) {
#ifdef __linux__
  const int64_t before = not_started_.fetch_add(written, std::memory_order_relaxed);
  if (before + written < kWritebackBytes) return;
  not_started_.store(0, std::memory_order_relaxed);
  sync_file_range(temporary.descriptor(), 0, 0, SYNC_FILE_RANGE_WRITE);
#else
  (void)temporary;
  (void)written;
#endif
}

void OutputFile::begin_sync() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) throw closed();
  ++pending_syncs_;
}

void OutputFile::end_sync() {
  const std::lock_guard lock(mutex_);
  --pending_syncs_;
  writes_ended_.notify_all();
}

void OutputFile::sync() {
  try {
    sync_once(*finish_writes());
  } catch (...) {
    abort();
    throw;
  }
}

void OutputFile::sync_once(const TemporaryFile& temporary) {
  {
    const std::lock_guard lock(mutex_);
    if (is_synced_) return;
  }
  sync_file(temporary.descriptor(), path_);
  // No write was announced in the meantime: syncs and commits exclude new ones.
  const std::lock_guard lock(mutex_);
  is_synced_ = true;
}

void OutputFile::begin_commit() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) throw closed();
  state_ = State::kCommitting;
}

void OutputFile::commit() {
  try {
    wait_for_syncs();
    const std::shared_ptr<TemporaryFile> temporary = finish_writes();
    sync_once(*temporary);
    temporary->take_name();
    replace_target(*temporary);
  } catch (...) {
    abort();
    throw;
  }
  sync_folder(folder_, path_);
}

// take_name() may replace the descriptor, which a running sync still needs.
void OutputFile::wait_for_syncs() {
  std::unique_lock lock(mutex_);
  writes_ended_.wait(lock, [this] { return pending_syncs_ == 0; });
}

std::shared_ptr<TemporaryFile> OutputFile::finish_writes() {
  std::unique_lock lock(mutex_);
  writes_ended_.wait(lock, [this] { return pending_writes_ == 0; });
  if (temporary_ == nullptr) throw closed();
  if (write_failed_) {
    throw Error(ErrorCode::kIo, "An earlier write to '" + path_ + "' failed; the old file was kept.", path_);
  }
  return temporary_;
}

void OutputFile::replace_target(TemporaryFile& temporary) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kAborted) throw closed();
  temporary.replace_target();
  state_ = State::kCommitted;
  temporary_.reset();
}

void OutputFile::abort() {
  std::shared_ptr<TemporaryFile> temporary;
  const std::lock_guard lock(mutex_);
  if (state_ == State::kCommitted || state_ == State::kAborted) return;
  state_ = State::kAborted;
  temporary = std::move(temporary_);
}

}  // namespace tilework
