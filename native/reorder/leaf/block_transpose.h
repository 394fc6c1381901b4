// Transposes tiles of at least a block (transpose_places.h): line by line beyond the caches, by way of packed
// pieces where rows and columns share sets of the cache, else directly. Internal to each file, as
// transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policy/cache_sets.h"
#include "policy/thresholds.h"
#include "reorder/leaf/packed_transpose.h"
#include "reorder/leaf/transpose_places.h"
#include "reorder/leaf/ways.h"

namespace tilework {
namespace {

template <class Block>
class BlockTranspose {
 public:
  static bool fits(const Tile& tile) { return tile.columns >= Block::kColumns && tile.rows >= Block::kRows; }

  static Way way_of(const Tile& tile) {
    if (writes_lines(tile)) return Way::kLineBlocks;
    if (!crowds_sets(tile.destination_column, std::min(tile.columns, kLine))) return Way::kBlocks;
    const bool packs = crowds_sets(tile.source_row, std::min(tile.rows, kLineRows)) || tile.zero_rows > 0;
    return packs ? Way::kPackedBlocks : Way::kNarrowStrips;
  }

  // One copy of the loops, however many callers there are.
  [[gnu::noinline]] static void run(Way way, const Tile& tile) {
    TILEWORK_TAKES(way);
    switch (way) {
      case Way::kLineBlocks:
        return run_lines(tile);
      case Way::kPackedBlocks:
        return pack(tile);
      case Way::kNarrowStrips:
        return run_few_columns(tile);
      default:
        return run_direct(tile, 0, tile.rows, columns_a_strip(tile));
    }
  }

 private:
  using Unit = typename Block::Unit;
  static constexpr int64_t kSize = sizeof(Unit);
  static constexpr int64_t kSourceSize = Block::kSourceSize;
  static constexpr int64_t kLine = std::max(kLineBytes / kSourceSize, Block::kColumns);
  static constexpr int64_t kMaxStrip =
      std::max(std::min(kMostStripColumns.value, kMostStripBytes.value / kSourceSize), kLine);
  // Rows that make a line of the destination.
  static constexpr int64_t kLineRows = kLineBytes / kSize;

  static void pack(const Tile& tile) {
    PackedTranspose<Block>::run(tile.source, {nullptr, tile.source_row}, tile.rows,
                                tile.rows - tile.zero_rows, tile.destination,
                                {nullptr, tile.destination_column}, tile.columns, Stores::kCached);
  }

  static bool writes_lines(const Tile& tile) {
    if constexpr (kLineRows % Block::kRows != 0) return false;
    return tile.rows >= kLineRows && tile.stores == Stores::kStreaming;
  }

  // Line by line of the destination, by way of a buffer that stays in the first-level cache. The source is
  // read a line of each row at a time. Rows are in pages of their own, or shorter than what processors follow
  // by themselves, so the lines that come next are asked for: into the second-level cache, as requests of the
  // first, which are few, would hold up the loads. Of rows that lie side by side those are the next panel,
  // front to back.
  static void run_lines(const Tile tile) {
    const int64_t first = rows_before_line(tile);
    const int64_t lines = (tile.rows - first) / kLineRows;
    const int64_t end = first + lines * kLineRows;
    const bool is_near = are_near(tile, kLineRows);
    const int64_t panel = (is_near ? 1 : kPanelLines) * kLineRows;
    const int64_t width = std::min(kLine, tile.columns);
    // Lines are asked for at steps of the rows, of the next strips or of a strip's share of the next panel.
    const int64_t step = is_near ? width * tile.source_row / tile.columns : tile.source_row;
    const int64_t strip_step = is_near ? panel * step : width * kSourceSize;
    const int64_t ahead = is_near ? panel * tile.source_row : strips_ahead(panel) * strip_step;
    if (first > 0) run_direct(tile, 0, std::max(first, Block::kRows), kMaxStrip);
    for (int64_t r = first; r < end; r += panel) {
      const int64_t rows = std::min(panel, end - r);
      const uint8_t* next = tile.source + r * tile.source_row + ahead;
      for (int64_t c = 0; c < tile.columns; c += width, next += strip_step) {
        run_panel(tile, std::min(c, tile.columns - width), width, r, rows, next, step);
      }
    }
    if (end < tile.rows) run_direct(tile, end, tile.rows, columns_a_strip(tile));
  }

  static constexpr int64_t kPanelLines = 2;
  // Prefetch distance in strips. Two are enough for panels whose rows have two lines of source elements in a
  // column, as they have without a conversion; eight took 1.2 times as long. Conversions from wider elements
  // read more for each destination line: float32 to int8 in memory took 0.6 of the time with eight.
  static constexpr int64_t strips_ahead(int64_t rows) {
    return rows * kSourceSize <= kPanelLines * kLineBytes ? 2 : 8;
  }

  // Rows before the first line of the destination; none where columns begin at different places of a line.
  static int64_t rows_before_line(const Tile& tile) {
    const bool has_lines = tile.destination_column % kLineBytes == 0;
    const int64_t rows = has_lines ? elements_before_line(tile.destination, kSize) : 0;
    return tile.rows >= rows + kLineRows ? rows : 0;
  }

  // Whether rows lie side by side, and so near that `rows` of them and the next ones fit into a second-level
  // cache, and so do their elements in the destination.
  static bool are_near(const Tile& tile, int64_t rows) {
    const Threshold room = kNearPanelBytes.over(std::max(kSize, kSourceSize)).times(kSourceSize);
    return lie_side_by_side(tile) && tile.source_row * rows <= room;
  }

  static bool lie_side_by_side(const Tile& tile) {
    const int64_t row = tile.columns * kSourceSize;
    return tile.source_row >= row && tile.source_row <= 2 * row;
  }

  // `rows` rows from row `r` on, a line or more of each of `columns` columns.
  [[gnu::always_inline]] static void run_panel(const Tile& tile, int64_t first, int64_t columns, int64_t r,
                                               int64_t rows, const uint8_t* next, int64_t step) {
    alignas(kLineBytes) uint8_t lines[kPanelLines * kLine * kLineBytes];
    const int64_t bytes = rows * kSize;
    for (int64_t part = 0; part < rows; part += Block::kRows) {
      fetch(next + part * step, step);
      move_rows(tile, first, columns, r + part, lines + part * kSize, bytes);
    }
    uint8_t* destination = tile.destination + first * tile.destination_column + r * kSize;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t i = 0; i < bytes; i += kLineBytes) {
        Block::store_line(destination + c * tile.destination_column + i, lines + c * bytes + i, tile.stores);
      }
    }
  }

  // The lines for a block of rows.
  [[gnu::always_inline]] static void fetch(const uint8_t* source, int64_t step) {
    for (int64_t r = 0; r < Block::kRows; ++r) {
      for (int64_t i = 0; i < std::max(kLine * kSourceSize, kLineBytes); i += kLineBytes)
        __builtin_prefetch(source + r * step + i, 0, kSecondLevel);
    }
  }

  // Columns whose places share a set of the cache are written a few at a time, from a piece of the source
  // that stays in the cache for the next few.
  static void run_few_columns(const Tile tile) {
    const int64_t rows =
        kCrowdedPieceBytes.value / std::max<int64_t>(tile.source_row, 1) / kLineRows * kLineRows;
    const int64_t piece = std::min(std::max({rows, 4 * kLineRows, Block::kRows}), tile.rows);
    for (int64_t r = 0; r < tile.rows; r += piece) {
      // The last piece may begin inside the one before.
      const int64_t first = std::min(r, tile.rows - piece);
      transpose_by_columns<Block>(tile.source + first * tile.source_row, Strided{tile.source_row}, piece,
                                  tile.destination + first * kSize, Strided{tile.destination_column},
                                  tile.columns);
    }
  }

  // Rows that are moved in one pass over the columns need no strips. Of others, short columns have a strip
  // that stays in the cache until the next pass. Where rows lie side by side, a strip of one line is used up
  // before the rows come round again; else it has as many columns as find room in the cache.
  static int64_t columns_a_strip(const Tile& tile) {
    const bool is_line = Block::kLinesInRegisters && tile.rows == 2 * Block::kRows && makes_lines(tile);
    const bool is_one_pass = tile.rows <= Block::kRows || is_line;
    if (is_one_pass && tile.zero_rows == 0) return tile.columns;
    const int64_t column = tile.rows * kSize;
    if (column <= kShortColumnBytes) return std::clamp(kShortColumnsBytes.value / column, kLine, kMaxStrip);
    if (are_near(tile, 4 * kLineRows)) return kLine;
    int64_t strip = kMaxStrip;
    while (strip > kLine && crowds_sets(tile.destination_column, strip)) strip /= 2;
    return std::max(strip, kLine);
  }

  // Rows [begin, end), `strip` columns at a time. Of rows that lie side by side, strips read a part each: a
  // panel of them at a time, which stays in the first-level cache until the last strip has read its part. 64
  // channels of 112 x 112 float32 took 1.7 times as long when each strip went over all rows. Longer rows stay
  // whole: a panel would hold too few.
  static void run_direct(const Tile& tile, int64_t begin, int64_t end, int64_t strip) {
    constexpr int64_t kStep = std::max(2 * kLineRows, Block::kRows);
    const int64_t steps =
        tile.columns > strip && lie_side_by_side(tile) ? kRowPanelBytes.value / tile.source_row / kStep : 0;
    const int64_t rows = steps > 0 ? steps * kStep : end - begin;
    if (steps > 0) TILEWORK_WAY("blocks: panels of rows side by side");
    for (int64_t r = begin; r < end; r += rows) run_blocks(tile, r, std::min(r + rows, end), strip);
  }

  static void run_blocks(const Tile tile, int64_t begin, int64_t end, int64_t strip) {
    for (int64_t c = 0; c < tile.columns; c += strip) {
      const int64_t first = std::min(c, tile.columns - Block::kColumns);
      const int64_t columns = std::min(strip, tile.columns - first);
      int64_t r = begin;
      if constexpr (Block::kLinesInRegisters) {
        const int64_t whole = makes_lines(tile) ? std::min(end, tile.rows - tile.zero_rows) : begin;
        for (; r + 2 * Block::kRows <= whole; r += 2 * Block::kRows) move_lines(tile, first, columns, r);
      }
      for (; r < end; r += Block::kRows) {
        const int64_t row = std::min(r, tile.rows - Block::kRows);
        move_rows(tile, first, columns, row, tile.destination + first * tile.destination_column + row * kSize,
                  tile.destination_column);
      }
    }
  }

  // Rows that share sets of the cache leave it before a line of them is used up.
  static bool makes_lines(const Tile& tile) { return !crowds_sets(tile.source_row, 2 * Block::kRows); }

  // A line of each column, from row `r` on.
  [[gnu::always_inline]] static void move_lines(const Tile& tile, int64_t first, int64_t columns, int64_t r) {
    const uint8_t* source = tile.source + r * tile.source_row + first * kSourceSize;
    uint8_t* destination = tile.destination + first * tile.destination_column + r * kSize;
    for (int64_t c = 0; c < columns; c += Block::kColumns) {
      const int64_t at = std::min(c, columns - Block::kColumns);
      Block::transpose_lines(source + at * kSourceSize, Strided{tile.source_row},
                             destination + at * tile.destination_column, Strided{tile.destination_column});
    }
  }

  // Places of rows from `source` on: those behind the valid ones are where zeros stand, as long as a strip.
  static void list_rows(int64_t valid, const uint8_t* source, int64_t source_row,
                        int64_t (&places)[Block::kRows]) {
    alignas(kLineBytes) static constexpr uint8_t kZeros[kMaxStrip * kSourceSize] = {};
    const auto zeros =
        static_cast<int64_t>(reinterpret_cast<intptr_t>(kZeros) - reinterpret_cast<intptr_t>(source));
    for (int64_t r = 0; r < Block::kRows; ++r) places[r] = r < valid ? r * source_row : zeros;
  }

  // One block of rows from row `r` on, `columns` wide.
  [[gnu::always_inline]] static void move_rows(const Tile& tile, int64_t first, int64_t columns, int64_t r,
                                               uint8_t* destination, int64_t destination_column) {
    const int64_t valid = tile.rows - tile.zero_rows - r;
    const uint8_t* source = tile.source + r * tile.source_row + first * kSourceSize;
    if (valid >= Block::kRows) {
      run_strip(source, Strided{tile.source_row}, destination, destination_column, columns);
    } else {
      run_completed(std::max<int64_t>(valid, 0), source, tile.source_row, destination, destination_column,
                    columns);
    }
  }

  // Rows behind the valid ones are read where zeros stand.
  [[gnu::noinline]] static void run_completed(int64_t valid, const uint8_t* source, int64_t source_row,
                                              uint8_t* destination, int64_t destination_column,
                                              int64_t columns) {
    int64_t places[Block::kRows];
    list_rows(valid, source, source_row, places);
    TILEWORK_WAY("blocks: rows completed by zeros");
    run_strip(source, Listed{places}, destination, destination_column, columns);
  }

  // As many rows as a block has.
  template <class Rows>
  [[gnu::always_inline]] static void run_strip(const uint8_t* source, Rows row_at, uint8_t* destination,
                                               int64_t destination_column, int64_t columns) {
    for (int64_t c = 0; c < columns; c += Block::kColumns) {
      const int64_t at = std::min(c, columns - Block::kColumns);
      Block::transpose(source + at * kSourceSize, row_at, destination + at * destination_column,
                       Strided{destination_column});
    }
  }
};

}  // namespace
}  // namespace tilework
