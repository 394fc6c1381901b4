// What the walk over a nest hands to a kernel: rectangles of elements, chains of rectangles, and groups of
// pixels. A kernel is
//
//   struct Kernel {
//     // Of the nests whose rectangles it takes.
//     static constexpr NestClass kClass;
//     static void move(const Rectangle& rectangle);
//     // False, and nothing is moved, where it has no way of its own for the chain: then its rectangles are
//     // moved one by one.
//     static bool move_chain(const Rectangle& first, const RectangleChain& chain);
//     // May be there: moves groups of pixels, and whether it does those of so many rows, columns (which are
//     // pixels) and channels.
//     static void move_pixels(const Rectangle& rectangle, const PixelGroups& groups);
//     static bool fits_pixels(int64_t rows, int64_t columns, int64_t channels);
//   };
//
// Internal to each file, as nest_walk.h.
#pragma once

#include <cstdint>

#include "memory/streaming_copy.h"
#include "reorder/cache_lines.h"
#include "reorder/nest_class.h"

namespace tilework {
namespace {

// `rows` x `columns` elements, all of which have a source. The one in column c of row r stands at source +
// r * source_row + c * source_column and goes to destination + r + c * destination_column; strides are in
// elements, addresses in bytes. Behind the last row `zero_rows` more are written as zeros.
struct Rectangle {
  const uint8_t* source;
  uint8_t* destination;
  int64_t columns;
  int64_t rows;
  int64_t zero_rows;
  int64_t source_column;
  int64_t source_row;
  int64_t destination_column;
  Stores stores;
};

// Whether each column of the destination begins at a multiple of so many bytes.
inline bool are_columns_aligned(const Rectangle& rectangle, int64_t element_bytes, int64_t unit) {
  return is_aligned(rectangle.destination, unit) && rectangle.destination_column * element_bytes % unit == 0;
}

// Rectangles that go on: number `i` of `count` begins at source + i * source_stride and goes to destination +
// i * destination_stride, in elements.
struct RectangleChain {
  InnerLoops::Chain kind;
  int64_t count;
  int64_t source_stride;
  int64_t destination_stride;
  // Of interleaved ones each is a row of `beside` rectangles that are `beside_source` elements apart in the
  // source and side by side in the destination, completed with `zero_beside` of zeros.
  int64_t beside = 1;
  int64_t zero_beside = 0;
  int64_t beside_source = 0;
  // The whole chain comes so many times, its beginnings so many elements apart.
  int64_t repeats = 1;
  int64_t repeat_source = 0;
  int64_t repeat_destination = 0;
  // Of runs: elements of one behind them that is not complete.
  int64_t rest = 0;
};

// Groups of pixels, of which the destination has the channels one behind the other: channel c of group g,
// number k = g * valid_channels + c of all. Pixel p of row r of a group stands at source + places[g] +
// r * rectangle.source_row + p * channels; channel k of it goes to
// destination + p * rectangle.destination_column + k * rectangle.rows + r. All in elements.
struct PixelGroups {
  const int64_t* places;
  int64_t count;
  int64_t channels;
  // Others are holes of the source.
  int64_t valid_channels;
};

}  // namespace
}  // namespace tilework
