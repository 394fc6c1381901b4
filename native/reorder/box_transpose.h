// Boxes that are made of rectangles, though no single loop is long enough for a tile: of 8 outputs by 2
// columns, say, whose next 2 columns stand with the next loop but one. Several loops together make a row of
// the source that is one piece of memory, and several others a column of the destination. Where each row
// begins and where each column goes is listed once; from then on such a box is transposed as any tile is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "reorder/nest_box.h"

namespace tilework {

// Places in bytes. Element c of row r goes to element r of column c; both begin with the same element.
struct ListedPlaces {
  const int64_t* rows;
  int64_t row_count;
  const int64_t* columns;
  int64_t column_count;
  // Columns that are written at a time.
  int64_t strip;
};

// Rectangles fill registers: they have at least 16 bytes one way and 32 the other.
using TransposeListed = void (*)(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);

void transpose_listed_x8(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);
#if defined(__x86_64__)
void transpose_listed_x8__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);
#endif

// Places of 4-bit elements, in bytes. A byte of a row has an element of an even column and one of the odd
// column beside it; a byte of a column those of two rows.
struct NibblePlaces {
  const int64_t* rows;
  int64_t row_bytes;
  // Of pairs of rows, which lie side by side.
  ListedPlaces even;
  ListedPlaces odd;
};

// `pairs` has room for all bytes of the rectangle. A row has 16 at least.
using TransposeNibbles = void (*)(const NibblePlaces& places, const uint8_t* source, uint8_t* destination,
                                  uint8_t* pairs);

void transpose_listed_x4(const NibblePlaces& places, const uint8_t* source, uint8_t* destination,
                         uint8_t* pairs);
#if defined(__x86_64__)
void transpose_listed_x4__avx2(const NibblePlaces& places, const uint8_t* source, uint8_t* destination,
                               uint8_t* pairs);
#endif

// Of boxes that are uncut (nest_box.h).
struct BoxTranspose {
  // Bytes from the first element of a rectangle.
  std::vector<int64_t> rows;
  std::vector<int64_t> columns;
  int64_t strip = 0;
  struct Rectangle {
    int64_t source;
    int64_t destination;
  };
  // Bytes from the first element of the box.
  std::vector<Rectangle> rectangles;
  // Of 4-bit elements: `columns` are the even ones, and `packed_rows` pairs of `rows`, which have so many
  // bytes.
  int64_t row_bytes = 0;
  std::vector<int64_t> odd_columns;
  std::vector<int64_t> packed_rows;

  NibblePlaces nibble_places() const {
    const auto of = [this](const std::vector<int64_t>& at) {
      return ListedPlaces{packed_rows.data(), static_cast<int64_t>(packed_rows.size()), at.data(),
                          static_cast<int64_t>(at.size()), strip};
    };
    return {rows.data(), row_bytes, of(columns), of(odd_columns)};
  }

  int64_t bytes() const;
};

// Null where a box has no rectangles that fill registers, or runs begin inside of bytes.
std::shared_ptr<const BoxTranspose> make_nibble_transpose(const LoopNest& nest, const NestBox& box);

}  // namespace tilework
