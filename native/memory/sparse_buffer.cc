#include "memory/sparse_buffer.h"

#include <algorithm>
#include <string>

#include "error.h"
#include "io/checked_math.h"

namespace tilework {

uint8_t* SparseBuffer::fill(int64_t offset, int64_t size) {
  if (offset < 0 || size < 0 || offset > size_ || size > size_ - offset) {
    throw Error(ErrorCode::kRange, "The " + std::to_string(size) + " bytes at " + std::to_string(offset) +
                                       " do not lie in the " + std::to_string(size_) +
                                       " bytes of the sparse buffer.");
  }
  if (size == 0) return data_;
  const int64_t begin = page_below(offset);
  const int64_t end = page_above(offset + size);
  commit(begin, end);
  const bool is_first = filled_begin_ == filled_end_;
  filled_begin_ = is_first ? begin : std::min(filled_begin_, begin);
  filled_end_ = std::max(filled_end_, end);
  return data_ + offset;
}

int64_t SparseBuffer::resident_bytes(int64_t offset, int64_t size) {
  return page_above(offset + size) - page_below(offset);
}

int64_t SparseBuffer::page_below(int64_t offset) { return offset / page_bytes() * page_bytes(); }

int64_t SparseBuffer::page_above(int64_t offset) { return ceil_div(offset, page_bytes()) * page_bytes(); }

}  // namespace tilework
