// Planes to blocks of channels beyond the caches: tiles whose columns are a block each and lie side by side
// in the destination. Internal to each file, as transpose_places.h.
//
// A column is 16 to 128 bytes. It is put together in registers and streamed at once, front to back, so that
// each line of the destination is complete before the next one begins and no line is read before it is
// written. The source is read a line of each row at a time. There are more rows than a processor follows by
// itself, each in pages of its own, so the lines that come next are asked for: of many rows in turn, which
// memory answers faster than one row after the other, and into the second-level cache, as the first takes few
// requests at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policy/thresholds.h"
#include "reorder/leaf/blocks.h"
#include "reorder/leaf/registers.h"
#include "reorder/leaf/tile.h"
#include "reorder/leaf/ways.h"

namespace tilework {
namespace {

template <class T, class Load = PlainLoad<T>>
class StreamedBlocks {
 public:
  static bool fits(const Tile& tile) {
    const int64_t block = tile.rows * kSize;
    const bool is_dense =
        tile.destination_column == block && tile.zero_rows == 0 && is_aligned(tile.destination, 16);
    if (tile.stores != Stores::kStreaming || !is_dense || tile.columns < kStrip) return false;
    return block == 16 || block == 32 || block == 64 || block == 128;
  }

  static void run(const Tile& tile) {
    switch (tile.rows * kSize) {
      case 16:
        return run_strips<16>(tile);
      case 32:
        return run_strips<32>(tile);
      case 64:
        return run_strips<64>(tile);
      default:
        return run_strips<128>(tile);
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  // Rows, or columns, that 16 bytes hold.
  static constexpr int kCount = 16 / sizeof(T);
  static constexpr int64_t kSourceSize = Load::kSourceSize;
  // Columns of a line of the source, and of two blocks at least.
  static constexpr int64_t kStrip = std::max<int64_t>(kLineBytes / kSourceSize, 2 * kCount);
  static constexpr int64_t kStripBytes = kStrip * kSourceSize;

  // The last strip overlaps the one before, which leaves it aligned.
  template <int64_t kBlock>
  [[gnu::noinline]] static void run_strips(const Tile tile) {
    TILEWORK_TAKES(Way::kStreamedBlocks);
    for (int64_t c = 0; c < tile.columns; c += kStrip) {
      const int64_t first = std::min(c, tile.columns - kStrip);
      const uint8_t* from = tile.source + first * kSourceSize;
      uint8_t* to = tile.destination + first * kBlock;
      if (tile.rows > kFollowedRows) fetch_ahead(tile, first);
      constexpr int64_t kColumns = kBlock == 16 ? 2 * kCount : kCount;
      for (int64_t i = 0; i < kStrip; i += kColumns) {
        put_columns<kBlock>(from + i * kSourceSize, tile.source_row, to + i * kBlock);
      }
    }
  }

  // A strip of each row, a few strips ahead; behind the last strip comes the first one of the next tile,
  // which most often lies behind the last row.
  TILEWORK_INLINE static void fetch_ahead(const Tile& tile, int64_t first) {
    constexpr int64_t kAhead = 4 * kStrip;
    const bool is_next = first + kAhead >= tile.columns;
    const uint8_t* from = tile.source + (first + kAhead) * kSourceSize;
    if (is_next) from += tile.rows * tile.source_row - tile.columns * kSourceSize;
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int64_t i = 0; i < kStripBytes; i += kLineBytes)
        __builtin_prefetch(from + r * tile.source_row + i, 0, kSecondLevel);
    }
  }

  template <int64_t kBlock>
  TILEWORK_INLINE static void put_columns(const uint8_t* from, int64_t row, uint8_t* to) {
    if constexpr (kBlock == 16) {
      put_short(from, row, to);
    } else if constexpr (kBlock == 32) {
      Register columns[kCount];
      load_columns(from, row, columns);
      for (int c = 0; c < kCount; ++c) stream32(to + c * 32, columns[c]);
    } else {
      for (int64_t line = 0; line < kBlock; line += kLineBytes) {
        put_lines<kBlock>(from + line / kSize * row, row, to + line);
      }
    }
  }

  // Columns of 16 bytes, twice as many.
  TILEWORK_INLINE static void put_short(const uint8_t* from, int64_t row, uint8_t* to) {
    Register columns[kCount];
    for (int r = 0; r < kCount; ++r) columns[r] = Load::whole(from + r * row);
    transpose_lanes<int{kSize}>(columns);
    for (int c = 0; c < kCount; ++c) put16(to + c * 16, low_lane(columns[c]), true);
    to += kCount * 16;
    for (int c = 0; c < kCount; ++c) put16(to + c * 16, high_lane(columns[c]), true);
  }

  // A line of each column.
  template <int64_t kBlock>
  TILEWORK_INLINE static void put_lines(const uint8_t* from, int64_t row, uint8_t* to) {
    Register low[kCount];
    Register high[kCount];
    load_columns(from, row, low);
    load_columns(from + 2 * kCount * row, row, high);
    for (int c = 0; c < kCount; ++c) {
      stream32(to + c * kBlock, low[c]);
      stream32(to + c * kBlock + 32, high[c]);
    }
  }

  // 32 bytes of each column.
  TILEWORK_INLINE static void load_columns(const uint8_t* from, int64_t row, Register (&columns)[kCount]) {
    for (int r = 0; r < kCount; ++r) columns[r] = Load::halves(from + r * row, from + (r + kCount) * row);
    transpose_lanes<int{kSize}>(columns);
  }
};

}  // namespace
}  // namespace tilework
