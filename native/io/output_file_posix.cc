#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "error.h"
#include "io/file_attributes.h"
#include "io/output_file.h"

namespace tilework {
namespace {

// Writeback is started after this many bytes: long enough for sequential disk writes, short enough to repeat
// often in a large file.
constexpr int64_t kWritebackBytes = int64_t{32} << 20;

// Linux follows this many symbolic links before it reports ELOOP.
constexpr int kMaxTargetLinks = 40;

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

std::string OutputFile::follow_links(const std::string& asked) {
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
  const bool is_own = target == Target::kOwn;
  const mode_t mode = old.exists || is_own ? 0600 : 0666;
  file->temporary_ = std::make_shared<TemporaryFile>(file->folder_, name, mode, path);
  if (old.exists && !is_own)
    hand_down_attributes(old.descriptor, old.status, file->temporary_->descriptor(), path);
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

}  // namespace tilework
