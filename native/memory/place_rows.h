// Copies dense rows to rows with a stride: the way of a staged tile to its columns of a wider matrix.
#pragma once

#include <cstdint>

namespace tilework {

// Copies `rows` rows of `row_bytes` bytes that follow each other to `destination`, `destination` + `stride`,
// and so on. The memory must not overlap.
void place_rows(uint8_t* destination, int64_t stride, const uint8_t* source, int64_t row_bytes, int64_t rows);

}  // namespace tilework
