#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <memory>
#include <utility>

#include "error.h"
#include "io/checked_math.h"
#include "io/folder.h"
#include "io/input_file.h"

namespace tilework {
namespace {

#ifdef MAP_NORESERVE
constexpr int kMapFlags = MAP_PRIVATE | MAP_NORESERVE;
#else
constexpr int kMapFlags = MAP_PRIVATE;
#endif

// Without O_NONBLOCK, opening a FIFO would wait for a writer before it can be refused.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Attempts to open a name whose file is replaced again and again.
constexpr int kMaxSizeTries = 8;

// Pauses of a millisecond: two ticks of the slowest kernels.
constexpr int kMaxWaits = 20;

struct stat status_of(int descriptor, const std::string& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) throw system_error(errno, "fstat", path);
  return status;
}

FileStamp stamp_of(const struct stat& status) {
#ifdef __APPLE__
  const timespec& time = status.st_mtimespec;
#else
  const timespec& time = status.st_mtim;
#endif
  return {static_cast<int64_t>(status.st_size), static_cast<int64_t>(time.tv_sec),
          static_cast<int64_t>(time.tv_nsec)};
}

// Moves when the file gets or loses a name.
std::pair<time_t, long> change_time(const struct stat& status) {
#ifdef __APPLE__
  return {status.st_ctimespec.tv_sec, status.st_ctimespec.tv_nsec};
#else
  return {status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
#endif
}

// Linux counts a name that is replaced as gone a moment before look-ups no longer find it. It holds the lock
// of the file's inode until both are done, and a read or a seek for data takes that lock, depending on the
// file system.
void wait_for_renames(int descriptor) {
  char byte = 0;
  (void)!pread(descriptor, &byte, 1, 0);
#ifdef SEEK_DATA
  (void)lseek(descriptor, 0, SEEK_DATA);
#endif
}

// Waits until a change of a file gets a later time than this: at most a few milliseconds, and for most files
// not at all. The time of a network share may be ahead, so the wait has an end.
void wait_for_clock(const std::pair<time_t, long>& time) {
#ifdef CLOCK_REALTIME_COARSE
  // The clock of file systems. It moves on with each tick of the kernel.
  constexpr clockid_t kClock = CLOCK_REALTIME_COARSE;
#else
  constexpr clockid_t kClock = CLOCK_REALTIME;
#endif
  for (int waits = 0; waits < kMaxWaits; ++waits) {
    timespec now{};
    if (clock_gettime(kClock, &now) != 0 || std::pair<time_t, long>(now.tv_sec, now.tv_nsec) > time) return;
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

std::shared_ptr<InputFile> InputFile::open(const std::string& path, InputOptions options, LiveCount live) {
  const int descriptor = ::open(path.c_str(), kOpenFlags);
  if (descriptor < 0) throw system_error(errno, "open", path);
  return from_descriptor(descriptor, path, options, std::move(live));
}

std::shared_ptr<InputFile> InputFile::open_below(const FolderPlace& folder, const std::string& name,
                                                 HardLinks hard_links, InputOptions options, LiveCount live) {
  const std::string path = folder.path_of(name);
  const std::shared_ptr<Folder> opened = Folder::open(folder, path);
  for (int tries = 0; tries < kMaxSizeTries; ++tries) {
    const int descriptor = opened->open_below(name, kOpenFlags);
    if (descriptor < 0 && errno == EXDEV) {
      throw Error(ErrorCode::kPathEscape,
                  "'" + name + "' is a link that leads out of its folder; symlinks: 'follow' allows it.",
                  name);
    }
    if (descriptor < 0) throw system_error(errno, "open", path);
    std::shared_ptr<InputFile> file = from_descriptor(descriptor, path, options, live);
    if (hard_links == HardLinks::kAllow || file->is_sole_file(*opened, name)) return file;
  }
  throw Error(ErrorCode::kFileChanged, "'" + name + "' was replaced while it was opened.", name);
}

// A hard link shows in no path, only in the number of names. A file from outside that is given a name below
// the folder has two, but another process can take that name away again before they are counted. Then the
// name leads to another file, or, if it was given back since, the status change time is another. False where
// the answer is not certain.
bool InputFile::is_sole_file(const Folder& folder, const std::string& name) const {
  const int descriptor = owned_descriptor_->number();
  const struct stat before = status_of(descriptor, path_);
  if (before.st_nlink > 1) {
    throw Error(ErrorCode::kPathEscape,
                "'" + name + "' has " + std::to_string(before.st_nlink) +
                    " names (hard links), so it may belong to another folder; hardLinks: 'allow' allows it.",
                name);
  }
  wait_for_clock(change_time(before));
  wait_for_renames(descriptor);
  const int by_name = folder.open_below(name, kOpenFlags);
  if (by_name < 0) return false;
  struct stat named {};
  const bool is_known = fstat(by_name, &named) == 0;
  close(by_name);
  const struct stat after = status_of(descriptor, path_);
  return is_known && named.st_dev == before.st_dev && named.st_ino == before.st_ino && named.st_nlink == 1 &&
         after.st_nlink == 1 && change_time(after) == change_time(before);
}

void InputFile::take_stamp() {
  const struct stat status = status_of(owned_descriptor_->number(), path_);
  if (S_ISDIR(status.st_mode)) throw system_error(EISDIR, "open", path_);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kArgument, "'" + path_ + "' is not a regular file and cannot be read by ranges.",
                path_);
  }
  if (status.st_size > kMaxSafeInteger) throw_overflow("The size of '" + path_ + "'");
  stamp_ = stamp_of(status);
}

void InputFile::map() {
  if (static_cast<uint64_t>(stamp_.size) > std::numeric_limits<size_t>::max()) {
    throw_overflow("The size of '" + path_ + "'");
  }
  void* memory = mmap(nullptr, static_cast<size_t>(stamp_.size), PROT_READ | PROT_WRITE, kMapFlags,
                      owned_descriptor_->number(), 0);
  if (memory == MAP_FAILED) throw system_error(errno, "mmap", path_);
  data_ = static_cast<uint8_t*>(memory);
  if (options_.guard) guard_ = std::make_unique<FaultGuard>(data_, static_cast<size_t>(stamp_.size));
}

void InputFile::unmap(uint8_t* data, int64_t size) { munmap(data, static_cast<size_t>(size)); }

FileStamp InputFile::stamp_now(FileHandle descriptor) const { return stamp_of(status_of(descriptor, path_)); }

}  // namespace tilework
