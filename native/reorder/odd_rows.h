// Rectangles whose columns are short and no multiple of a block: pixels of 19 channels, say. A block that
// overlaps the one before would move half of them twice, so what is left of the widest blocks takes blocks of
// fewer rows. Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>

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
                      tile.rows * kSize <= kLongestColumn && tile.columns >= kColumns &&
                      tile.stores == Stores::kCached && !crowds_sets(tile.destination_column, kColumns);
    if (!fits) return false;
    for (int64_t c = 0; c < tile.columns; c += kStrip) {
      const int64_t first = std::min(c, tile.columns - kColumns);
      move(tile, first, std::min(kStrip, tile.columns - first));
    }
    return true;
  }

 private:
  static constexpr auto kSize = static_cast<int64_t>(sizeof(typename Wide::Unit));
  // Of longer ones a block more or less is little.
  static constexpr int64_t kLongestColumn = 2 * kLineBytes;
  static constexpr int64_t kColumns = std::max({Wide::kColumns, Narrow::kColumns, Half::kColumns});
  static constexpr int64_t kStrip = 256 / kSize;

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
