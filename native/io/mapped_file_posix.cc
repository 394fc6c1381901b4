#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "error.h"
#include "io/checked_math.h"
#include "io/mapped_file.h"

namespace tilework {
namespace {

#ifdef MAP_NORESERVE
constexpr int kMapFlags = MAP_PRIVATE | MAP_NORESERVE;
#else
constexpr int kMapFlags = MAP_PRIVATE;
#endif

// By start address. Never destroyed: threads may still drop mappings while the process exits.
struct Registry {
  std::mutex mutex;
  std::map<uintptr_t, std::weak_ptr<MappedFile>> by_address;
};

Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

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

}  // namespace

std::shared_ptr<MappedFile> MappedFile::open(const std::string& path, LiveCount live) {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer before it can be refused.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) throw system_error(errno, "open", path);
  std::shared_ptr<MappedFile> file(new MappedFile(path, descriptor, std::move(live)));
  file->map();
  if (file->data_ != nullptr) {
    const std::lock_guard lock(registry().mutex);
    registry().by_address[reinterpret_cast<uintptr_t>(file->data_)] = file;
  }
  return file;
}

std::shared_ptr<MappedFile> MappedFile::find(const void* data, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  std::shared_ptr<MappedFile> file;
  {
    const std::lock_guard lock(registry().mutex);
    auto after = registry().by_address.upper_bound(begin);
    if (after == registry().by_address.begin()) return nullptr;
    file = std::prev(after)->second.lock();
  }
  if (file == nullptr) return nullptr;
  const uintptr_t offset = begin - reinterpret_cast<uintptr_t>(file->data_);
  const auto total = static_cast<uintptr_t>(file->size());
  return offset < total && size <= total - offset ? file : nullptr;
}

MappedFile::MappedFile(std::string path, int descriptor, LiveCount live)
    : path_(std::move(path)),
      owned_descriptor_(std::make_shared<Descriptor>(descriptor)),
      descriptor_(owned_descriptor_),
      live_(std::move(live)) {
  if (live_) live_->fetch_add(1);
}

MappedFile::Descriptor::~Descriptor() { close(number_); }

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    {
      // The entry goes first: after munmap the same address may belong to another mapping at once.
      const std::lock_guard lock(registry().mutex);
      registry().by_address.erase(reinterpret_cast<uintptr_t>(data_));
    }
    munmap(data_, static_cast<size_t>(stamp_.size));
  }
  if (live_) live_->fetch_sub(1);
}

void MappedFile::map() {
  const struct stat status = status_of(owned_descriptor_->number(), path_);
  if (S_ISDIR(status.st_mode)) throw system_error(EISDIR, "open", path_);
  if (!S_ISREG(status.st_mode)) {
    throw Error("ERR_ARGUMENT", "'" + path_ + "' is no regular file and cannot be mapped.", "open", path_);
  }
  if (status.st_size > kMaxSafeInteger ||
      static_cast<uint64_t>(status.st_size) > std::numeric_limits<size_t>::max()) {
    throw_overflow("The size of '" + path_ + "'");
  }
  stamp_ = stamp_of(status);
  if (stamp_.size == 0) return;
  void* memory = mmap(nullptr, static_cast<size_t>(stamp_.size), PROT_READ | PROT_WRITE, kMapFlags,
                      owned_descriptor_->number(), 0);
  if (memory == MAP_FAILED) throw system_error(errno, "mmap", path_);
  data_ = static_cast<uint8_t*>(memory);
}

void MappedFile::verify_unchanged() const {
  const std::shared_ptr<Descriptor> open = descriptor();
  if (open == nullptr) return;
  const FileStamp now = stamp_of(status_of(open->number(), path_));
  if (now == stamp_) return;
  const std::string what = now.size == stamp_.size ? "its modification time moved"
                                                   : "it had " + std::to_string(stamp_.size) +
                                                         " bytes and now has " + std::to_string(now.size);
  throw Error("ERR_FILE_CHANGED", "'" + path_ + "' was changed while it was open: " + what + ".", {}, path_);
}

}  // namespace tilework
