#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "error.h"
#include "memory/sparse_buffer.h"

namespace tilework {
namespace {

#ifdef MAP_NORESERVE
constexpr int kFlags = MAP_PRIVATE | MAP_ANON | MAP_NORESERVE;
#else
constexpr int kFlags = MAP_PRIVATE | MAP_ANON;
#endif

}  // namespace

SparseBuffer::SparseBuffer(int64_t size) : size_(size) {
  if (size == 0) return;
  void* memory = MAP_FAILED;
  if (static_cast<uint64_t>(size) <= SIZE_MAX) {
    memory = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, kFlags, -1, 0);
  }
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kLimit, "The system has no addresses for a sparse buffer of " +
                                       std::to_string(size) + " bytes; read the tensor in smaller parts.");
  }
  data_ = static_cast<uint8_t*>(memory);
#ifdef MADV_NOHUGEPAGE
  // A huge page would make 2 MiB resident for each range, however small.
  madvise(data_, static_cast<size_t>(size), MADV_NOHUGEPAGE);
#endif
}

SparseBuffer::~SparseBuffer() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
}

int64_t SparseBuffer::page_bytes() {
  static const auto size = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// The first store gives a page its memory.
void SparseBuffer::commit(int64_t, int64_t) {}

void SparseBuffer::clear() noexcept {
  if (filled_begin_ == filled_end_) return;
  uint8_t* memory = data_ + filled_begin_;
  const auto size = static_cast<size_t>(filled_end_ - filled_begin_);
#ifdef __linux__
  const bool is_empty = madvise(memory, size, MADV_DONTNEED) == 0;
#else
  // Elsewhere the advice may keep old bytes; new pages in the same place are zeros for sure.
  const bool is_empty = mmap(memory, size, PROT_READ | PROT_WRITE, kFlags | MAP_FIXED, -1, 0) != MAP_FAILED;
#endif
  // Locked memory cannot be given back.
  if (!is_empty) std::memset(memory, 0, static_cast<size_t>(std::min(filled_end_, size_) - filled_begin_));
  filled_begin_ = filled_end_ = 0;
}

}  // namespace tilework
