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
  // Whether whole cache lines are read and written one after the other, by way of a buffer.
  bool by_lines = false;
  // Lines of the rectangle that comes next, to be asked for meanwhile.
  struct Lines {
    const uint8_t* first = nullptr;
    const int64_t* places = nullptr;
    int64_t count = 0;
  };
  Lines next_source = {};
  Lines next_destination = {};
};

// One function for each width of elements. Rectangles fill registers: they have at least 16 bytes one way and
// 32 the other.
using TransposeListed = void (*)(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);

void transpose_listed_x8(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);
void transpose_listed_x16(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);
void transpose_listed_x32(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);
void transpose_listed_x64(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);
#if defined(__x86_64__)
void transpose_listed_x8__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);
void transpose_listed_x16__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);
void transpose_listed_x32__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);
void transpose_listed_x64__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination);
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
  // Where rows or columns lie so that they push each other out of the cache, each line is used up at once.
  // The lines of a rectangle are asked for while the one before is moved: no processor follows so many pieces
  // that are far apart.
  bool by_lines = false;
  // Whether squares of a line overlap by a quarter at most.
  bool fills_lines = false;
  // Whether rows or columns would crowd the cache, were it not that several share a line.
  bool shares_lines = false;
  std::vector<int64_t> source_lines;
  std::vector<int64_t> destination_lines;
  struct Rectangle {
    int64_t source;
    int64_t destination;
  };
  // Bytes from the first element of the box.
  std::vector<Rectangle> rectangles;
  // Elements that no rectangle has, as they have no source.
  std::vector<BoxRange> zeros;

  ListedPlaces places() const {
    return {rows.data(),    static_cast<int64_t>(rows.size()),
            columns.data(), static_cast<int64_t>(columns.size()),
            strip,          by_lines};
  }
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

// Null where a box has no rectangles that fill registers.
std::shared_ptr<const BoxTranspose> make_transpose(const LoopNest& nest, const NestBox& box,
                                                   int64_t element_bytes);

// For 4-bit elements; null also where runs begin inside of bytes.
std::shared_ptr<const BoxTranspose> make_nibble_transpose(const LoopNest& nest, const NestBox& box);

}  // namespace tilework
