#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "error.h"
#include "io/descriptor_io.h"

namespace tilework {
namespace {

// Linux and macOS refuse or shorten single calls near 2 GiB.
constexpr int64_t kMaxCallBytes = int64_t{1} << 30;

}  // namespace

#ifdef __linux__
int64_t copy_in_kernel(const DescriptorEnd& from, const DescriptorEnd& to, int64_t size) {
  off_t source = static_cast<off_t>(from.offset);
  off_t destination = static_cast<off_t>(to.offset);
  int64_t copied = 0;
  while (copied < size) {
    const auto chunk = static_cast<size_t>(std::min(size - copied, kMaxCallBytes));
    const ssize_t count = copy_file_range(from.descriptor, &source, to.descriptor, &destination, chunk, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    copied += count;
  }
  return copied;
}
#else
// macOS copies or clones whole files only.
int64_t copy_in_kernel(const DescriptorEnd&, const DescriptorEnd&, int64_t) { return 0; }
#endif

int64_t read_fully(const DescriptorEnd& from, uint8_t* to, int64_t size) {
  int64_t done = 0;
  while (done < size) {
    const auto chunk = static_cast<size_t>(std::min(size - done, kMaxCallBytes));
    const ssize_t count = pread(from.descriptor, to + done, chunk, static_cast<off_t>(from.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, "pread", from.path);
    if (count == 0) break;
    done += count;
  }
  return done;
}

void write_fully(const DescriptorEnd& to, const uint8_t* bytes, int64_t size) {
  int64_t done = 0;
  while (done < size) {
    const auto chunk = static_cast<size_t>(std::min(size - done, kMaxCallBytes));
    const ssize_t count = pwrite(to.descriptor, bytes + done, chunk, static_cast<off_t>(to.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, "pwrite", to.path);
    done += count;
  }
}

void close_file(FileHandle handle) noexcept { close(handle); }

void sync_file(FileHandle descriptor, const std::string& path) {
#ifdef __APPLE__
  // On macOS fsync reaches only the cache of the drive.
  if (fcntl(descriptor, F_FULLFSYNC) == 0) return;
#endif
  while (fsync(descriptor) != 0) {
    if (errno != EINTR) throw system_error(errno, "fsync", path);
  }
}

}  // namespace tilework
