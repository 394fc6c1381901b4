#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/folder.h"

#ifdef __linux__
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "error.h"

namespace tilework {
namespace {

// A folder of which nothing but names is needed: one without read permission can be opened too.
#if defined(O_PATH)
constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
#elif defined(O_SEARCH)
constexpr int kFolderFlags = O_SEARCH | O_DIRECTORY | O_CLOEXEC;
#else
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif

// Linux follows this many symbolic links before it reports ELOOP.
constexpr int kMaxLinks = 40;

#ifdef __linux__
#ifdef SYS_openat2
constexpr long kOpenat2 = SYS_openat2;
#else
// The same number on every architecture.
constexpr long kOpenat2 = 437;
#endif

// `struct open_how` and its constants; <linux/openat2.h> is missing on systems that are built for old
// kernels.
struct OpenHow {
  uint64_t flags;
  uint64_t mode;
  uint64_t resolve;
};
constexpr uint64_t kResolveNoMagiclinks = 0x02;
constexpr uint64_t kResolveBeneath = 0x08;

// The kernel gives up with EAGAIN when something was renamed meanwhile.
constexpr int kMaxTries = 8;

int open_by_kernel(int folder, const std::string& name, int flags) {
  const OpenHow how{static_cast<uint64_t>(flags | O_CLOEXEC), 0, kResolveBeneath | kResolveNoMagiclinks};
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const long descriptor = syscall(kOpenat2, folder, name.c_str(), &how, sizeof(how));
    if (descriptor >= 0 || (errno != EAGAIN && errno != EINTR)) return static_cast<int>(descriptor);
  }
  return -1;
}
#endif

// Never destroyed: threads may still use folders while the process exits.
struct OpenFolders {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<Folder>> by_identity;
};

OpenFolders& open_folders() {
  static OpenFolders* instance = new OpenFolders;
  return *instance;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

// Puts the components of a path before those that are left.
void prepend(std::deque<std::string>& parts, const std::string& path) {
  std::vector<std::string> found;
  size_t start = 0;
  while (start <= path.size()) {
    const size_t end = std::min(path.find('/', start), path.size());
    if (end > start) found.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  parts.insert(parts.begin(), found.begin(), found.end());
}

bool real_path(const std::string& path, std::string& real) {
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) == nullptr) return false;
  real = resolved;
  return true;
}

// The way from `folder` to an absolute path below it, which the walk then takes itself; false for any other
// path.
bool way_to(const std::string& absolute, const std::string& folder, std::string& way) {
  std::string to;
  std::string from;
  if (!real_path(absolute, to) || !real_path(folder, from)) return false;
  if (!from.ends_with('/')) from += '/';
  if (to + "/" != from && !to.starts_with(from)) return false;
  way = to.size() <= from.size() ? "" : to.substr(from.size());
  return true;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of_path(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// Many files of one folder share its descriptor.
std::shared_ptr<Folder> Folder::shared(int descriptor, const std::string& path) {
  std::shared_ptr<Folder> folder(new Folder(descriptor, path));
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return folder;
  const std::lock_guard lock(open_folders().mutex);
  std::erase_if(open_folders().by_identity, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Folder>& known = open_folders().by_identity[{status.st_dev, status.st_ino}];
  if (std::shared_ptr<Folder> same = known.lock()) return same;
  known = folder;
  return folder;
}

std::shared_ptr<Folder> Folder::open_path(const std::string& path, const std::string& asked) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), kFolderFlags);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) throw system_error(errno, "open", asked);
  return shared(descriptor, path);
}

std::shared_ptr<Folder> Folder::folder_below(const std::string& name) const {
  const int descriptor = open_below(name, kFolderFlags);
  if (descriptor < 0) return nullptr;
  return shared(descriptor, path_ + "/" + name);
}

bool Folder::create_folder(const std::string& name) const {
  return mkdirat(descriptor_, name.c_str(), 0777) == 0 || errno == EEXIST;
}

Folder::~Folder() { close(descriptor_); }

int Folder::open_below(const std::string& name, int flags) const {
#ifdef __linux__
  const int descriptor = open_by_kernel(descriptor_, name, flags);
  if (descriptor >= 0) return descriptor;
  // ENOSYS and EPERM: the kernel is old, or a filter forbids the call. EXDEV: the name leads out of the
  // folder, unless it is a link with an absolute path of the folder. The walk decides in all of these.
  if (errno != ENOSYS && errno != EPERM && errno != EXDEV && errno != EAGAIN && errno != EINTR) return -1;
#endif
  return walk_below(name, flags);
}

int Folder::walk_below(const std::string& name, int flags) const {
  std::deque<std::string> parts;
  prepend(parts, name);
  // The folders between this one and the current one. ".." goes back to the last: a folder that was moved
  // meanwhile has another parent.
  std::vector<Descriptor> way;
  int links = 0;
  if (name.starts_with('/')) return errno = EXDEV, -1;
  for (;;) {
    const int folder = way.empty() ? descriptor_ : way.back().number();
    if (parts.empty()) return openat(folder, ".", flags | O_CLOEXEC);
    const std::string part = parts.front();
    parts.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      if (way.empty()) return errno = EXDEV, -1;
      way.pop_back();
      continue;
    }
    const bool is_last = parts.empty();
    const int descriptor =
        openat(folder, part.c_str(), (is_last ? flags : kFolderFlags) | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor >= 0 && is_last) return descriptor;
    if (descriptor >= 0) {
      way.emplace_back(descriptor);
      continue;
    }
    const int failure = errno;
    char link[PATH_MAX];
    const ssize_t length = readlinkat(folder, part.c_str(), link, sizeof(link));
    if (length < 0) return errno = failure, -1;
    if (++links > kMaxLinks) return errno = ELOOP, -1;
    std::string target(link, static_cast<size_t>(length));
    if (target.starts_with('/')) {
      if (!way_to(target, path_, target)) return errno = EXDEV, -1;
      way.clear();
    }
    prepend(parts, target);
  }
}

void Folder::sync(const std::string& asked) const {
  const int descriptor = openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  const int failed = fsync(descriptor) != 0 ? errno : 0;
  close(descriptor);
  if (failed == EIO || failed == ENOSPC) throw system_error(failed, "fsync", asked);
}

}  // namespace tilework
