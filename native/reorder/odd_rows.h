// Rectangles whose columns are short and no multiple of a block: pixels of 19 channels, say. A block that
// overlaps the one before would move half of them twice, so what is left of the widest blocks takes blocks of
// fewer rows. Columns that are shorter than the widest block and side by side are written as wide as it is,
// each over the end of the one before: one store a column, where stores are what takes the time. Internal to
// each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reorder/any_tile.h"
#include "reorder/cache_sets.h"

namespace tilework {
namespace {

class OddRows {
 public:
  // False where the rectangle is another.
  [[gnu::always_inline]] static bool run(const Tile& tile, const TileBlocks& blocks) {
    const BlockMoves& wide = *blocks.wide;
    const int64_t columns = std::max({wide.columns, blocks.narrow->columns, blocks.half->columns});
    // Of longer ones a block more or less is little.
    const bool is_odd = tile.rows * wide.size <= 2 * kLineBytes && tile.rows > blocks.narrow->rows &&
                        BlockMoves::whole(tile.rows, wide.rows) != tile.rows;
    const bool fits = is_odd && tile.zero_rows == 0 && tile.columns >= columns &&
                      tile.stores == Stores::kCached && !crowds_sets(tile.destination_column, columns);
    if (fits) OddRows(tile, blocks).run(columns);
    return fits;
  }

 private:
  OddRows(const Tile& tile, const TileBlocks& blocks)
      : tile_(tile), wide_(*blocks.wide), narrow_(*blocks.narrow), half_(*blocks.half) {}

  [[gnu::noinline]] void run(int64_t columns) {
    const int64_t strip = 256 / wide_.size;
    for (int64_t c = columns_written_over(); c < tile_.columns; c += strip) {
      const int64_t first = std::min(c, tile_.columns - columns);
      move(first, std::min(strip, tile_.columns - first));
    }
  }

  // How many columns are written as wide as a block, what is too much for the next one to write over. Not the
  // last ones, behind which other things stand. In place of rows that are not there others are read.
  int64_t columns_written_over() {
    if (tile_.rows > wide_.rows || tile_.destination_column != tile_.rows * wide_.size) return 0;
    const int64_t half = wide_.rows / 2;
    const bool is_few = tile_.rows <= half + wide_.rows / 8;
    int64_t more[kMostBlockRows / 2];
    for (int64_t i = 0; i < half; ++i) more[i] = std::min(half + i, tile_.rows - 1) * tile_.source_row;
    const int64_t columns = BlockMoves::whole(tile_.columns - 1, wide_.columns);
    if (columns > 0) {
      wide_.few_rows(is_few ? BlockPart::kFew : BlockPart::kHalf, tile_.source, tile_.source_row, more,
                     tile_.destination, tile_.destination_column, columns);
    }
    return columns;
  }

  void move(int64_t first, int64_t columns) {
    int64_t r = 0;
    for (; tile_.rows - r >= wide_.rows; r += wide_.rows) strip(wide_, first, columns, r);
    for (; tile_.rows - r > half_.rows; r += narrow_.rows)
      strip(narrow_, first, columns, std::min(r, tile_.rows - narrow_.rows));
    if (r < tile_.rows) strip(half_, first, columns, tile_.rows - half_.rows);
  }

  void strip(const BlockMoves& block, int64_t first, int64_t columns, int64_t r) {
    block.even(tile_.source + r * tile_.source_row + first * block.size, tile_.source_row, block.rows,
               tile_.destination + first * tile_.destination_column + r * block.size,
               tile_.destination_column, columns);
  }

  const Tile& tile_;
  const BlockMoves& wide_;
  const BlockMoves& narrow_;
  const BlockMoves& half_;
};

}  // namespace
}  // namespace tilework
