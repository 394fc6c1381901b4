// Transposes tiles of at least a block (transpose_places.h): line by line beyond the caches, by way of packed
// pieces where rows and columns share sets of the cache, else directly. Internal to each file, as
// transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reorder/cache_sets.h"
#include "reorder/packed_transpose.h"
#include "reorder/transpose_places.h"

namespace tilework {
namespace {

class BlockTranspose {
 public:
  // The tile is at least a block.
  [[gnu::noinline]] static void run(const BlockMoves& block, const Tile& tile) {
    BlockTranspose(block, tile).run();
  }

 private:
  BlockTranspose(const BlockMoves& block, const Tile& tile) : block_(block), tile_(tile) {}

  void run() {
    const int64_t columns = std::min(tile_.columns, block_.line_columns);
    if (tile_.stores == Stores::kStreaming && block_.line_rows % block_.rows == 0 &&
        tile_.rows >= block_.line_rows) {
      run_lines();
    } else if (thrashes()) {
      pack();
    } else if (crowds_sets(tile_.destination_column, columns)) {
      if (crowds_sets(tile_.source_row, std::min(tile_.rows, block_.line_rows)) || tile_.zero_rows > 0) {
        pack();
      } else {
        run_few_columns();
      }
    } else {
      run_direct(0, tile_.rows, columns_a_strip());
    }
  }

  // Lines of all rows of a block meet in one set of the cache, which does not hold so many, and a block uses
  // no more than a quarter of each: the others would read them again.
  bool thrashes() const {
    return block_.rows > 2 * kFewWays && block_.columns * block_.source_size <= kLineBytes / 4 &&
           tile_.source_row % kSetBytes == 0 && tile_.columns > block_.columns;
  }

  [[gnu::noinline]] void pack() const {
    PackedTranspose(block_, tile_.source, {nullptr, tile_.source_row}, tile_.rows, valid_rows(),
                    tile_.destination, {nullptr, tile_.destination_column}, tile_.columns, Stores::kCached)
        .run();
  }

  int64_t valid_rows() const { return tile_.rows - tile_.zero_rows; }
  const uint8_t* source_at(int64_t r, int64_t c) const {
    return tile_.source + r * tile_.source_row + c * block_.source_size;
  }
  uint8_t* destination_at(int64_t r, int64_t c) const {
    return tile_.destination + c * tile_.destination_column + r * block_.size;
  }

  // Line by line of the destination, by way of a buffer that stays in the first-level cache. The source is
  // read a line of each row at a time. Rows are in pages of their own, or shorter than what processors follow
  // by themselves, so the lines that come next are asked for: into the second-level cache, as requests of the
  // first, which are few, would hold up the loads. Of rows that lie side by side those are the next panel,
  // front to back.
  [[gnu::noinline]] void run_lines() const {
    const int64_t first = rows_before_line();
    const int64_t end = first + (tile_.rows - first) / block_.line_rows * block_.line_rows;
    const bool is_near = are_near(block_.line_rows);
    const int64_t panel = (is_near ? 1 : kPanelLines) * block_.line_rows;
    const int64_t width = std::min(block_.line_columns, tile_.columns);
    // Lines are asked for at steps of the rows, of the next strips or of a strip's share of the next panel.
    const int64_t step = is_near ? width * tile_.source_row / tile_.columns : tile_.source_row;
    const int64_t strip_step = is_near ? panel * step : width * block_.source_size;
    const int64_t ahead = is_near ? panel * tile_.source_row : strips_ahead(panel) * strip_step;
    if (first > 0) run_direct(0, std::max(first, block_.rows), block_.max_strip);
    for (int64_t r = first; r < end; r += panel) {
      const int64_t rows = std::min(panel, end - r);
      const uint8_t* next = source_at(r, 0) + ahead;
      for (int64_t c = 0; c < tile_.columns; c += width, next += strip_step) {
        const int64_t column = std::min(c, tile_.columns - width);
        block_.panel(source_at(r, column), tile_.source_row, rows, valid_rows() - r,
                     destination_at(r, column), tile_.destination_column, width, tile_.stores, next, step);
      }
    }
    if (end < tile_.rows) run_direct(end, tile_.rows, columns_a_strip());
  }

  // Processors follow a few rows by themselves. Of more rows, lines are asked for the earlier: float32 to
  // int8, 128 rows in memory, took 0.6 of the time with eight strips ahead; 32 rows of float32 took 1.2 times
  // as long.
  static constexpr int64_t kFewRows = 32;
  static constexpr int64_t strips_ahead(int64_t rows) { return rows <= kFewRows ? 2 : 8; }

  // Rows before the first line of the destination; none where columns begin at different places of a line.
  int64_t rows_before_line() const {
    const bool has_lines = tile_.destination_column % kLineBytes == 0;
    const int64_t rows = has_lines ? elements_before_line(tile_.destination, block_.size) : 0;
    return tile_.rows >= rows + block_.line_rows ? rows : 0;
  }

  // Whether rows lie side by side, and so near that `rows` of them and the next ones fit into a second-level
  // cache, and so do their elements in the destination.
  bool are_near(int64_t rows) const {
    constexpr int64_t kMostPanelBytes = 128 << 10;
    const int64_t room = kMostPanelBytes / std::max(block_.size, block_.source_size) * block_.source_size;
    return lie_side_by_side() && tile_.source_row * rows <= room;
  }

  bool lie_side_by_side() const {
    const int64_t row = tile_.columns * block_.source_size;
    return tile_.source_row >= row && tile_.source_row <= 2 * row;
  }

  // Columns whose places share a set of the cache are written a few at a time, from a piece of the source
  // that stays in the cache for the next few.
  [[gnu::noinline]] void run_few_columns() const {
    constexpr int64_t kBytes = 16 << 10;
    const int64_t rows =
        kBytes / std::max<int64_t>(tile_.source_row, 1) / block_.line_rows * block_.line_rows;
    const int64_t piece = std::min(std::max({rows, 4 * block_.line_rows, block_.rows}), tile_.rows);
    for (int64_t r = 0; r < tile_.rows; r += piece) {
      // The last piece may begin inside the one before.
      const int64_t row = std::min(r, tile_.rows - piece);
      block_.by_columns(source_at(row, 0), tile_.source_row, piece, destination_at(row, 0),
                        tile_.destination_column, tile_.columns);
    }
  }

  // Of short columns, what a strip writes takes a quarter of the smallest first-level cache.
  static constexpr int64_t kShortColumnsBytes = 8 << 10;

  // Where rows lie side by side, a strip of one line is used up before the rows come round again, of others a
  // strip of as many columns as find room in the cache.
  int64_t columns_a_strip() const {
    const int64_t column = tile_.rows * block_.size;
    if (column <= 2 * kLineBytes)
      return std::clamp(kShortColumnsBytes / column, block_.line_columns, block_.max_strip);
    if (are_near(4 * block_.line_rows)) return block_.line_columns;
    int64_t strip = block_.max_strip;
    while (strip > block_.line_columns && crowds_sets(tile_.destination_column, strip)) strip /= 2;
    return std::max(strip, block_.line_columns);
  }

  // Rows [begin, end), `strip` columns at a time.
  [[gnu::always_inline]] void run_direct(int64_t begin, int64_t end, int64_t strip) const {
    const int64_t few = tile_.columns - BlockMoves::whole(tile_.columns, block_.columns);
    if (block_.last != nullptr && few > 0 && few <= block_.columns / 2 && tile_.zero_rows == 0) {
      run_beside_last(few, begin, end, strip);
    } else {
      run_panels(begin, end, strip);
    }
  }

  // Of rows that lie side by side, strips read a part each: a panel of them at a time, which stays in the
  // first-level cache until the last strip has read its part. 64 channels of 112 x 112 float32 took 1.7 times
  // as long when each strip went over all rows. Longer rows stay whole: a panel would hold too few.
  void run_panels(int64_t begin, int64_t end, int64_t strip) const {
    constexpr int64_t kPanelBytes = 16 << 10;
    const int64_t step = std::max(2 * block_.line_rows, block_.rows);
    const int64_t steps =
        tile_.columns > strip && lie_side_by_side() ? kPanelBytes / tile_.source_row / step : 0;
    const int64_t rows = steps > 0 ? steps * step : end - begin;
    for (int64_t r = begin; r < end; r += rows) run_strips(r, std::min(r + rows, end), tile_.columns, strip);
  }

  // Whole blocks, and the `few` columns behind them, for which a whole one would have much to move again. As
  // many rows at a time as stay in the first-level cache.
  [[gnu::noinline]] void run_beside_last(int64_t few, int64_t begin, int64_t end, int64_t strip) const {
    const int64_t rows_at_once = 8 * block_.rows;
    const int64_t first = tile_.columns - block_.columns;
    const BlockPart part = few <= block_.columns / 4 ? BlockPart::kFew : BlockPart::kHalf;
    for (int64_t r = begin; r < end; r += rows_at_once) {
      const int64_t last = std::min(r + rows_at_once, end);
      run_strips(r, last, tile_.columns - few, strip);
      const int64_t row = std::min(r, tile_.rows - block_.rows);
      block_.last(part, source_at(row, first), tile_.source_row, std::max(last - row, block_.rows),
                  destination_at(row, first), tile_.destination_column);
    }
  }

  void run_strips(int64_t begin, int64_t end, int64_t columns, int64_t strip) const {
    // One block of rows never comes round again. Zeros in place of rows are no longer than a strip.
    if (end - begin <= block_.rows && tile_.zero_rows == 0) strip = columns;
    for (int64_t c = 0; c < columns; c += strip) {
      const int64_t first = std::min(c, columns - block_.columns);
      move_rows(begin, end, first, std::min(strip, columns - first), destination_at(begin, first),
                tile_.destination_column);
    }
  }

  // Rows [begin, end) of some columns; `destination` is where row `begin` goes. The last block may begin
  // inside the one before, or in front of `begin`.
  void move_rows(int64_t begin, int64_t end, int64_t c, int64_t columns, uint8_t* destination,
                 int64_t column_stride) const {
    const int64_t valid = std::min(end, valid_rows());
    int64_t r = begin;
    const auto to = [&](int64_t row) { return destination + (row - begin) * block_.size; };
    if (const int64_t rows = BlockMoves::whole(valid - r, 2 * block_.rows); makes_lines_ && rows > 0) {
      block_.lines(source_at(r, c), tile_.source_row, rows, to(r), column_stride, columns);
      r += rows;
    }
    if (r >= end) return;
    if (tile_.zero_rows == 0) {
      const int64_t row = std::min(r, tile_.rows - block_.rows);
      block_.even(source_at(row, c), tile_.source_row, std::max(end - row, block_.rows), to(row),
                  column_stride, columns);
      return;
    }
    if (const int64_t rows = BlockMoves::whole(valid - r, block_.rows); rows > 0) {
      block_.even(source_at(r, c), tile_.source_row, rows, to(r), column_stride, columns);
      r += rows;
    }
    for (int64_t rows = 0; r < end; r += rows) {
      rows = makes_lines_ && r + 2 * block_.rows <= end ? 2 * block_.rows : block_.rows;
      const int64_t row = std::min(r, tile_.rows - rows);
      block_.completed(source_at(row, c), tile_.source_row, rows, valid_rows() - row, to(row), column_stride,
                       columns);
    }
  }

  const BlockMoves& block_;
  const Tile& tile_;
  // Rows that share sets of the cache leave it before a line of them is used up.
  const bool makes_lines_ = block_.lines != nullptr && !crowds_sets(tile_.source_row, 2 * block_.rows);
};

}  // namespace
}  // namespace tilework
