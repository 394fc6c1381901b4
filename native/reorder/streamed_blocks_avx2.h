// Planes to blocks of channels beyond the caches, with AVX2: tiles whose columns are a block each and lie
// side by side in the destination. Included by reorder_avx2.cc only.
//
// A column is 16 to 128 bytes. It is put together in registers and streamed at once, front to back, so that
// each line of the destination is complete before the next one begins and no line is read before it is
// written. The source is read a line of each row at a time. There are more rows than a processor follows by
// itself, each in pages of its own, so the lines that come next are asked for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reorder/next_tile.h"
#include "reorder/tile_transpose.h"

namespace tilework {
namespace {

template <class T>
class StreamedBlocks {
 public:
  // False where the tile is of another kind.
  static bool run(const Tile& tile) {
    const int64_t block = tile.rows * kSize;
    const bool is_dense = tile.destination_column == block && tile.zero_rows == 0 &&
                          reinterpret_cast<uintptr_t>(tile.destination) % 32 == 0;
    if (tile.stores != Stores::kStreaming || !is_dense || tile.columns < kStrip) return false;
    switch (block) {
      case 16:
        run_strips<16>(tile);
        return true;
      case 32:
        run_strips<32>(tile);
        return true;
      case 64:
        run_strips<64>(tile);
        return true;
      case 128:
        run_strips<128>(tile);
        return true;
      default:
        return false;
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  // Rows, or columns, that 16 bytes hold.
  static constexpr int kCount = 16 / sizeof(T);
  // Columns of a line of the source.
  static constexpr int64_t kStrip = kLineBytes / kSize;
  static constexpr int64_t kAheadBytes = 256;
  // The next lines of more rows push out of the cache what is being read.
  static constexpr int64_t kFewRows = 16;

  // The last strip overlaps the one before, which leaves it aligned.
  template <int64_t kBlock>
  [[gnu::noinline]] static void run_strips(const Tile tile) {
    constexpr int64_t kRows = kBlock / kSize;
    NextTile next(tile, kRows, tile.columns * kSize, tile.columns / kStrip);
    for (int64_t c = 0; c < tile.columns; c += kStrip) {
      const int64_t first = std::min(c, tile.columns - kStrip);
      const uint8_t* from = tile.source + first * kSize;
      uint8_t* to = tile.destination + first * kBlock;
      if (next.is_asked_for()) {
        next.fetch();
      } else if (kRows <= kFewRows) {
        fetch_rows(from, tile.source_row, kRows);
      }
      constexpr int64_t kColumns = kBlock == 16 ? 2 * kCount : kCount;
      for (int64_t i = 0; i < kStrip; i += kColumns) {
        put_columns<kBlock>(from + i * kSize, tile.source_row, to + i * kBlock);
      }
    }
  }

  static void fetch_rows(const uint8_t* from, int64_t row, int64_t rows) {
    for (int64_t r = 0; r < rows; ++r) __builtin_prefetch(from + r * row + kAheadBytes);
  }

  template <int64_t kBlock>
  TILEWORK_INLINE static void put_columns(const uint8_t* from, int64_t row, uint8_t* to) {
    if constexpr (kBlock == 16) {
      put_short(from, row, to);
    } else if constexpr (kBlock == 32) {
      __m256i columns[kCount];
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
    __m256i columns[kCount];
    for (int r = 0; r < kCount; ++r) columns[r] = load32(from + r * row);
    transpose_lanes<int{kSize}>(columns);
    for (int c = 0; c < kCount; ++c) put16(to + c * 16, _mm256_castsi256_si128(columns[c]), true);
    to += kCount * 16;
    for (int c = 0; c < kCount; ++c) put16(to + c * 16, _mm256_extracti128_si256(columns[c], 1), true);
  }

  // A line of each column.
  template <int64_t kBlock>
  TILEWORK_INLINE static void put_lines(const uint8_t* from, int64_t row, uint8_t* to) {
    __m256i low[kCount];
    __m256i high[kCount];
    load_columns(from, row, low);
    load_columns(from + 2 * kCount * row, row, high);
    for (int c = 0; c < kCount; ++c) {
      stream32(to + c * kBlock, low[c]);
      stream32(to + c * kBlock + 32, high[c]);
    }
  }

  // 32 bytes of each column.
  TILEWORK_INLINE static void load_columns(const uint8_t* from, int64_t row, __m256i (&columns)[kCount]) {
    for (int r = 0; r < kCount; ++r) columns[r] = load_lanes(from + r * row, from + (r + kCount) * row);
    transpose_lanes<int{kSize}>(columns);
  }

  TILEWORK_INLINE static void stream32(uint8_t* at, __m256i value) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(at), value);
  }
};

}  // namespace
}  // namespace tilework
