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
#include "io/file_attributes.h"
#include "io/output_file.h"

namespace tilework {
namespace {

// Writeback is started after this many bytes: long enough for sequential disk writes, short enough to repeat
// often in a large file.
constexpr int64_t kWritebackBytes = int64_t{32} << 20;

// Linux follows this many symbolic links before it reports ELOOP.
constexpr int kMaxTargetLinks = 40;

// End of a chain of symbolic links; the file need not exist.
std::string follow_links(const std::string& asked) {
  std::string path = asked;
  for (int i = 0; i < kMaxTargetLinks; ++i) {
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

// The file that will be replaced, where there is one.
struct OldFile {
  explicit OldFile(const Folder& folder, const std::string& name, const std::string& asked) {
    if (fstatat(folder.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return;
      throw system_error(errno, "stat", asked);
    }
    if (S_ISDIR(status.st_mode)) throw system_error(EISDIR, "open", asked);
    // What a link leads to stays as it is, so there is nothing to take over.
    if (S_ISLNK(status.st_mode)) return;
    if (!S_ISREG(status.st_mode)) {
      throw Error(ErrorCode::kArgument, "'" + asked + "' is not a regular file and cannot be replaced.",
                  asked);
    }
    exists = true;
    constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    descriptor = openat(folder.descriptor(), name.c_str(), kFlags);
    // The name may have changed hands since.
    if (descriptor >= 0) fstat(descriptor, &status);
  }
  ~OldFile() {
    if (descriptor >= 0) close(descriptor);
  }
  OldFile(const OldFile&) = delete;
  OldFile& operator=(const OldFile&) = delete;

  bool exists = false;
  struct stat status {};
  // -1 where it may not be read.
  int descriptor = -1;
};

}  // namespace

std::shared_ptr<OutputFile> OutputFile::create(const std::string& path, int64_t byte_length) {
  const std::string target = follow_links(path);
  const std::string name = name_of_path(target);
  if (name.empty() || name == "." || name == "..")
    throw system_error(path.empty() ? ENOENT : EISDIR, "open", path);
  return create_at(path, Folder::open(folder_of(target), path), name, Target::kAny, byte_length);
}

std::vector<std::string> OutputFile::paths_of(const std::string& path) {
  const std::string target = follow_links(path);
  const std::string parent = folder_of(target);
  const std::string prefix = parent.ends_with('/') ? parent : parent + "/";
  std::vector<std::string> paths = {target};
  const auto folder = Folder::open(parent, path);
  for (const std::string& name : TemporaryFile::all_names(*folder, name_of_path(target))) {
    paths.push_back(prefix + name);
  }
  return paths;
}

std::shared_ptr<OutputFile> OutputFile::create_below(const std::string& folder, const std::string& name,
                                                     Target target, int64_t byte_length) {
  const std::string path = folder + "/" + name;
  const auto below = Folder::open(folder, path)->folder_below(folder_of(name));
  if (below == nullptr && errno == EXDEV) {
    throw Error(ErrorCode::kPathEscape, "'" + name + "' lies behind a link that leads out of the folder.",
                name);
  }
  if (below == nullptr) throw system_error(errno, "open", path);
  return create_at(path, below, name_of_path(name), target, byte_length);
}

std::shared_ptr<OutputFile> OutputFile::create_at(const std::string& path,
                                                  std::shared_ptr<const Folder> folder,
                                                  const std::string& name, Target target,
                                                  int64_t byte_length) {
  const OldFile old(*folder, name, path);
  std::shared_ptr<OutputFile> file(new OutputFile);
  file->path_ = path;
  file->target_ = target;
  file->folder_ = std::move(folder);
  // Never wider than the old file's, not even before the exact permissions are set.
  const mode_t mode = old.exists ? 0600 : 0666;
  file->temporary_ = std::make_shared<TemporaryFile>(file->folder_, name, mode, path);
  if (old.exists) hand_down_attributes(old.descriptor, old.status, file->temporary_->descriptor(), path);
  if (byte_length > 0) file->reserve(byte_length);
  return file;
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
  while (ftruncate(temporary_->descriptor(), length) != 0) {
    if (errno != EINTR) throw system_error(errno, "ftruncate", path_);
  }
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
    if (target_ == Target::kAny) temporary->take_name();
    replace_target(*temporary);
  } catch (...) {
    abort();
    throw;
  }
  std::exchange(folder_, nullptr)->sync(path_);
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
  // Nothing may fail once the file has its name.
  const int descriptor = temporary.descriptor();
  identity_ = identity_of(descriptor, path_);
  if (target_ == Target::kNew) {
    temporary.take_target_name();
  } else {
    temporary.replace_target();
  }
  // Where the system refused to give a name to the file, a copy has it.
  if (temporary.descriptor() != descriptor) identity_ = identity_of(temporary.descriptor(), path_);
  state_ = State::kCommitted;
  temporary_.reset();
}

FileIdentity OutputFile::identity() const {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kCommitted) return identity_;
  if (temporary_ == nullptr) throw closed();
  return identity_of(temporary_->descriptor(), path_);
}

void OutputFile::abort() {
  std::shared_ptr<TemporaryFile> temporary;
  const std::lock_guard lock(mutex_);
  if (state_ == State::kCommitted || state_ == State::kAborted) return;
  state_ = State::kAborted;
  temporary = std::move(temporary_);
  folder_.reset();
}

}  // namespace tilework
