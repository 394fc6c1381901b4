// Minimum and maximum of each block of elements along rows, for scales that blocks or channels have.
#pragma once

#include <cstdint>

namespace tilework {

// Rows of elements, each cut into blocks from its start; the last block of a row may be shorter.
struct RowBlocks {
  // At least 1.
  int64_t row_length;
  int64_t block_length;

  // Index of the block that holds the element at a row-major index.
  int64_t block_of(int64_t element) const;
};

// One entry per block of all rows.
struct BlockRanges {
  float* min;
  float* max;
};

// Extends the ranges by `count` numbers, the first of which has the row-major index `first`. NaN is ignored.
void extend_block_ranges(const RowBlocks& blocks, int64_t first, const float* numbers, int64_t count,
                         const BlockRanges& ranges);

}  // namespace tilework
