// Runs: rows of elements that both sides keep together, and chains of them. Internal to each file, as
// transpose_places.h.
#pragma once

#include <cstdint>

#include "memory/streaming_copy.h"
#include "reorder/cache_lines.h"

namespace tilework {
namespace {

// `columns` runs of `rows` elements. Run c moves from source + c * source_column to destination +
// c * destination_column, and `zero_rows` zeros follow it there; strides are in elements, addresses in bytes.
struct Rectangle {
  const uint8_t* source;
  uint8_t* destination;
  int64_t columns;
  int64_t rows;
  int64_t zero_rows;
  int64_t source_column;
  int64_t destination_column;
  Stores stores;
};

// Whether each column of the destination begins at a multiple of so many bytes.
inline bool are_columns_aligned(const Rectangle& rectangle, int64_t element_bytes, int64_t unit) {
  return is_aligned(rectangle.destination, unit) && rectangle.destination_column * element_bytes % unit == 0;
}

// Rectangles that follow each other in the destination: number `i` of `count` begins at source +
// i * source_stride and destination + i * destination_stride, in elements.
struct RectangleChain {
  int64_t count;
  int64_t source_stride;
  int64_t destination_stride;
  // Elements of a shorter run behind the last one.
  int64_t rest = 0;
};

}  // namespace
}  // namespace tilework
