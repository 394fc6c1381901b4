// Transposes the rectangles of box_transpose.h, whose rows and columns stand anywhere. Internal to each file,
// as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "reorder/box_transpose.h"
#include "reorder/transpose_places.h"

namespace tilework {
namespace {

// Squares of whole lines on both sides, each line read and written once. Takes at least one square.
template <class Block>
[[gnu::noinline]] void transpose_squares(const uint8_t* source, Listed row_at, int64_t rows,
                                         uint8_t* destination, Listed column_at, int64_t columns) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(typename Block::Unit));
  constexpr int64_t kLine = kLineBytes / kSize;
  alignas(kLineBytes) uint8_t lines[kLine * kLineBytes];
  for (int64_t c = 0; c < columns; c += kLine) {
    const int64_t column = std::min(c, columns - kLine);
    for (int64_t r = 0; r < rows; r += kLine) {
      const int64_t row = std::min(r, rows - kLine);
      for (int64_t part = 0; part < kLine; part += Block::kRows) {
        for (int64_t i = 0; i < kLine; i += Block::kColumns) {
          Block::transpose(source + (column + i) * kSize, row_at.from(row + part),
                           lines + i * kLineBytes + part * kSize, Strided{kLineBytes});
        }
      }
      for (int64_t i = 0; i < kLine; ++i) {
        Block::store_line(destination + column_at(column + i) + row * kSize, lines + i * kLineBytes,
                          Stores::kCached);
      }
    }
  }
}

// Listed rows and columns, in blocks where they fit; see box_transpose.h.
template <class Wide, class Narrow>
void transpose_listed(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  const Listed rows{places.rows};
  const Listed columns{places.columns};
  if constexpr (kLineBytes / int64_t{sizeof(typename Wide::Unit)} % Wide::kRows == 0) {
    if (places.by_lines) {
      return transpose_squares<Wide>(source, rows, places.row_count, destination, columns,
                                     places.column_count);
    }
  }
  if (places.row_count >= Wide::kRows && places.column_count >= Wide::kColumns) {
    transpose_places<Wide>(source, rows, places.row_count, destination, columns, places.column_count,
                           places.strip);
  } else if (places.row_count >= Narrow::kRows && places.column_count >= Narrow::kColumns) {
    transpose_places<Narrow>(source, rows, places.row_count, destination, columns, places.column_count,
                             places.strip);
  } else {
    constexpr auto kSize = static_cast<int64_t>(sizeof(typename Narrow::Unit));
    for (int64_t c = 0; c < places.column_count; ++c) {
      for (int64_t r = 0; r < places.row_count; ++r) {
        std::memcpy(destination + columns(c) + r * kSize, source + rows(r) + c * kSize, kSize);
      }
    }
  }
}

}  // namespace
}  // namespace tilework
