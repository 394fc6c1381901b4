// Rectangles whose columns are short and no multiple of a block: pixels of 19 channels, say. A block that
// overlaps the one before would move half of them twice, so what is left of the widest blocks takes blocks of
// fewer rows. Columns that are shorter than the widest block and side by side are written as wide as it is,
// each over the end of the one before: one store a column, where stores are what takes the time. Internal to
// each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policy/thresholds.h"
#include "reorder/cache_sets.h"
#include "reorder/transpose_places.h"

namespace tilework {
namespace {

// Blocks of most rows first.
template <class Wide, class Narrow, class Half>
class OddRows {
 public:
  // False where the rectangle is another.
  static bool run(const Tile& tile) {
    const bool fits = tile.rows > Narrow::kRows && tile.rows % Wide::kRows != 0 && tile.zero_rows == 0 &&
                      tile.rows * kSize <= kLongestOddColumn && tile.columns >= kColumns &&
                      tile.stores == Stores::kCached && !crowds_sets(tile.destination_column, kColumns);
    if (!fits) return false;
    TILEWORK_WAY("odd rows");
    for (int64_t c = columns_written_over(tile); c < tile.columns; c += kStrip) {
      const int64_t first = std::min(c, tile.columns - kColumns);
      move(tile, first, std::min(kStrip, tile.columns - first));
    }
    return true;
  }

 private:
  static constexpr auto kSize = static_cast<int64_t>(sizeof(typename Wide::Unit));
  static constexpr int64_t kColumns = std::max({Wide::kColumns, Narrow::kColumns, Half::kColumns});
  static constexpr int64_t kStrip = 256 / kSize;

  // How many columns are written as wide as a block, what is too much for the next one to write over. Not the
  // last ones, behind which other things stand.
  static int64_t columns_written_over(const Tile& tile) {
    constexpr int64_t kFew = Wide::kRows / 8;
    if (tile.rows > Wide::kRows || tile.destination_column != tile.rows * kSize) return 0;
    if (tile.rows <= kHalfOfRows + kFew) return write_over<kFew>(tile);
    return write_over<kHalfOfRows>(tile);
  }

  static constexpr int64_t kHalfOfRows = Wide::kRows / 2;

  // Of at most `kMore` rows more than half a block has; in place of those that are not there others are read.
  template <int64_t kMore>
  [[gnu::noinline]] static int64_t write_over(const Tile tile) {
    TILEWORK_WAY("odd rows: written over");
    int64_t more[kMore];
    for (int64_t i = 0; i < kMore; ++i) more[i] = std::min(kHalfOfRows + i, tile.rows - 1) * tile.source_row;
    int64_t c = 0;
    for (; c + Wide::kColumns < tile.columns; c += Wide::kColumns) {
      Wide::template transpose_few_rows<kMore>(tile.source + c * kSize, Strided{tile.source_row},
                                               Listed{more}, tile.destination + c * tile.destination_column,
                                               Strided{tile.destination_column});
    }
    return c;
  }

  static void move(const Tile& tile, int64_t first, int64_t columns) {
    int64_t r = 0;
    for (; tile.rows - r >= Wide::kRows; r += Wide::kRows) strip<Wide>(tile, first, columns, r);
    for (; tile.rows - r > Half::kRows; r += Narrow::kRows) {
      strip<Narrow>(tile, first, columns, std::min(r, tile.rows - Narrow::kRows));
    }
    if (r < tile.rows) strip<Half>(tile, first, columns, tile.rows - Half::kRows);
  }

  template <class Block>
  [[gnu::noinline]] static void strip(const Tile tile, int64_t first, int64_t columns, int64_t r) {
    const uint8_t* source = tile.source + r * tile.source_row + first * kSize;
    uint8_t* destination = tile.destination + first * tile.destination_column + r * kSize;
    for (int64_t c = 0; c < columns; c += Block::kColumns) {
      const int64_t at = std::min(c, columns - Block::kColumns);
      Block::transpose(source + at * kSize, Strided{tile.source_row},
                       destination + at * tile.destination_column, Strided{tile.destination_column});
    }
  }
};

}  // namespace
}  // namespace tilework
