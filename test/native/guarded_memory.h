// Memory between two inaccessible pages: an access one byte before the first or after the last byte ends the
// process, with and without sanitizers.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace tilework::test {

// The page that the bytes are adjacent to.
enum class Against { kLower, kUpper };

class GuardedMemory {
 public:
  explicit GuardedMemory(int64_t capacity)
      : page_(sysconf(_SC_PAGESIZE)), inner_((capacity + page_ - 1) / page_ * page_) {
    void* map = mmap(nullptr, outer(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::runtime_error("No memory.");
    map_ = static_cast<uint8_t*>(map);
    if (mprotect(map_ + page_, static_cast<size_t>(inner_), PROT_READ | PROT_WRITE) != 0) {
      throw std::runtime_error("Pages cannot be made writable.");
    }
  }
  ~GuardedMemory() { munmap(map_, outer()); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  int64_t capacity() const { return inner_; }
  uint8_t* place(int64_t bytes, Against end) const {
    return map_ + page_ + (end == Against::kLower ? 0 : inner_ - bytes);
  }

 private:
  size_t outer() const { return static_cast<size_t>(inner_ + 2 * page_); }

  int64_t page_;
  int64_t inner_;
  uint8_t* map_;
};

}  // namespace tilework::test
