// Transposes the rectangles of box_transpose.h, whose rows and columns stand anywhere. Internal to each file,
// as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "io/checked_math.h"
#include "reorder/box_transpose.h"
#include "reorder/transpose_places.h"

namespace tilework {
namespace {

// Asks for the lines of the rectangle that comes next, a share of them at a time.
class NextLines {
 public:
  NextLines(const ListedPlaces& places, int64_t shares)
      : source_(places.next_source), destination_(places.next_destination) {
    source_share_ = (source_.count + shares - 1) / shares;
    destination_share_ = (destination_.count + shares - 1) / shares;
  }

  void fetch() {
    fetch(source_, source_share_);
    fetch(destination_, destination_share_);
  }

 private:
  static void fetch(ListedPlaces::Lines& lines, int64_t share) {
    const int64_t count = std::min(share, lines.count);
    for (int64_t i = 0; i < count; ++i) __builtin_prefetch(lines.first + lines.places[i], 0, kSecondLevel);
    lines.places += count;
    lines.count -= count;
  }

  ListedPlaces::Lines source_;
  ListedPlaces::Lines destination_;
  int64_t source_share_;
  int64_t destination_share_;
};

// Squares of a line each way, or of what there is: each line is read once, into a buffer that shares no sets
// of the cache with others, and written once, before others push it out.
template <class Block>
class SquareTranspose {
 public:
  [[gnu::noinline]] static void run(const ListedPlaces places, const uint8_t* source, uint8_t* destination) {
    const Listed rows{places.rows};
    const Listed columns{places.columns};
    const int64_t squares = ceil_div(places.column_count, kLine) * ceil_div(places.row_count, kLine);
    NextLines next(places, squares);
    for (int64_t c = 0; c < places.column_count; c += kLine) {
      const int64_t wide = extent(c, places.column_count, Block::kColumns);
      const int64_t column = std::min(c, places.column_count - wide);
      for (int64_t r = 0; r < places.row_count; r += kLine) {
        const int64_t high = extent(r, places.row_count, Block::kRows);
        const int64_t row = std::min(r, places.row_count - high);
        next.fetch();
        move(source + column * kSize, rows.from(row), high, destination + row * kSize, columns.from(column),
             wide);
      }
    }
  }

 private:
  static constexpr auto kSize = static_cast<int64_t>(sizeof(typename Block::Unit));
  static constexpr int64_t kLine = kLineBytes / kSize;
  static_assert(kLine % Block::kRows == 0 && kLine % Block::kColumns == 0);

  // Of the square that begins at `at`: as many blocks as what is left of `count` takes.
  static int64_t extent(int64_t at, int64_t count, int64_t block) {
    return std::min({kLine, ceil_div(count - at, block) * block, count});
  }

  [[gnu::always_inline]] static void move(const uint8_t* source, Listed row_at, int64_t high,
                                          uint8_t* destination, Listed column_at, int64_t wide) {
    alignas(kLineBytes) uint8_t lines[kLine * kLineBytes];
    if (wide == kLine) {
      for (int64_t r = 0; r < high; ++r) copy_piece(lines + r * kLineBytes, source + row_at(r), kLineBytes);
    } else {
      for (int64_t r = 0; r < high; ++r) copy_piece(lines + r * kLineBytes, source + row_at(r), wide * kSize);
    }
    for (int64_t c = 0; c < wide; c += Block::kColumns) {
      const int64_t column = std::min(c, wide - Block::kColumns);
      transpose_columns<Block>(lines + column * kSize, Spaced<kLineBytes>{}, high, destination,
                               column_at.from(column));
    }
  }
};

template <class Block>
void transpose_in(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  if (places.by_lines) return SquareTranspose<Block>::run(places, source, destination);
  transpose_places<Block>(source, Listed{places.rows}, places.row_count, destination, Listed{places.columns},
                          places.column_count, places.strip);
}

// Listed rows and columns in wide blocks, or in narrow ones, of which one fits: see make_transpose in
// box_transpose.h.
template <class Wide, class Narrow>
void transpose_listed(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  if (places.row_count >= Wide::kRows && places.column_count >= Wide::kColumns) {
    transpose_in<Wide>(places, source, destination);
  } else {
    transpose_in<Narrow>(places, source, destination);
  }
}

}  // namespace
}  // namespace tilework
