// Memory with the addresses of a tensor's storage, of which only what was filled is resident. A kernel takes
// it for the whole source, while no more than the ranges that it reads were ever fetched.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilework {

class SparseBuffer {
 public:
  // Addresses only, zeros where they are read. Errors: ERR_LIMIT when the system has no addresses for it.
  explicit SparseBuffer(int64_t size);
  ~SparseBuffer();
  SparseBuffer(const SparseBuffer&) = delete;
  SparseBuffer& operator=(const SparseBuffer&) = delete;

  int64_t size() const { return size_; }
  const uint8_t* data() const { return data_; }

  // Memory of bytes [offset, offset + size) to write to; its pages count as filled. One thread at a time, and
  // no reader meanwhile. Errors: ERR_RANGE.
  uint8_t* fill(int64_t offset, int64_t size);
  // Gives the filled pages back; all bytes are zero then.
  void clear() noexcept;

  // Bytes of memory that filling a range may take: its pages.
  static int64_t resident_bytes(int64_t offset, int64_t size);

 private:
  static int64_t page_bytes();
  static int64_t page_below(int64_t offset);
  static int64_t page_above(int64_t offset);
  // Memory for whole pages that the caller is about to fill. Errors: a system error.
  void commit(int64_t begin, int64_t end);

  uint8_t* data_ = nullptr;
  int64_t size_;
  // Whole pages between which everything was filled; empty pages among them cost nothing to give back.
  int64_t filled_begin_ = 0;
  int64_t filled_end_ = 0;
};

}  // namespace tilework
