#include "io/input_file.h"

#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "error.h"
#include "io/descriptor_io.h"

namespace tilework {
namespace {

// Mappings by start address. Never destroyed: threads may still drop mappings while the process exits.
struct Registry {
  std::mutex mutex;
  std::map<uintptr_t, std::weak_ptr<InputFile>> by_address;
  // Lets find() skip the mutex while no file is mapped.
  std::atomic<size_t> size{0};
};

Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

}  // namespace

std::shared_ptr<InputFile> InputFile::from_descriptor(FileHandle descriptor, const std::string& path,
                                                      InputOptions options, LiveCount live) {
  std::shared_ptr<InputFile> file(new InputFile(path, options, descriptor, std::move(live)));
  file->take_stamp();
  if (options.mapped && file->size() > 0) {
    file->map();
    const std::lock_guard lock(registry().mutex);
    registry().by_address[reinterpret_cast<uintptr_t>(file->data_)] = file;
    registry().size = registry().by_address.size();
  }
  return file;
}

std::shared_ptr<InputFile> InputFile::find(const void* data, size_t size) {
  // Relaxed order is enough: a caller can only have memory of a mapping after the thread that registered the
  // mapping.
  if (registry().size == 0) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  std::shared_ptr<InputFile> file;
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

InputFile::InputFile(std::string path, InputOptions options, FileHandle descriptor, LiveCount live)
    : path_(std::move(path)),
      options_(options),
      owned_descriptor_(std::make_shared<Descriptor>(descriptor)),
      descriptor_(owned_descriptor_),
      live_(options.mapped ? std::move(live) : nullptr) {
  if (live_) live_->fetch_add(1);
}

InputFile::Descriptor::~Descriptor() { close_file(number_); }

InputFile::~InputFile() {
  if (data_ != nullptr) {
    {
      // Unregister first: after munmap another mapping may get the same address at once.
      const std::lock_guard lock(registry().mutex);
      registry().by_address.erase(reinterpret_cast<uintptr_t>(data_));
      registry().size = registry().by_address.size();
    }
    guard_.reset();
    unmap(data_, stamp_.size);
  }
  if (live_) live_->fetch_sub(1);
}

void InputFile::read_at(uint8_t* to, int64_t offset, int64_t size) const {
  const std::shared_ptr<Descriptor> open = descriptor();
  if (open == nullptr) throw closed();
  const int64_t count = read_fully({open->number(), offset, path_}, to, size);
  if (count < size) throw ends_at(offset + count);
}

void InputFile::verify_unchanged() const {
  if (guard_ != nullptr && guard_->faulted()) throw changed("mapped bytes that were read are gone");
  const std::shared_ptr<Descriptor> open = descriptor();
  if (open == nullptr) return;
  const FileStamp now = stamp_now(open->number());
  if (now == stamp_) return;
  throw changed(now.size == stamp_.size ? "its modification time changed"
                                        : "it had " + std::to_string(stamp_.size) + " bytes and now has " +
                                              std::to_string(now.size));
}

Error InputFile::closed() const {
  return Error(ErrorCode::kClosed, "'" + path_ + "' was closed before it was read.", path_);
}

Error InputFile::ends_at(int64_t offset) const {
  return changed("it had " + std::to_string(size()) + " bytes and now ends at " + std::to_string(offset));
}

Error InputFile::changed(const std::string& how) const {
  return Error(ErrorCode::kFileChanged, "'" + path_ + "' was changed while it was open: " + how + ".", path_);
}

}  // namespace tilework
