// Tiles of units of 16 bytes beyond the caches: blocks of 16 small channels that are put together to
// larger ones or taken apart. Lines of the destination are made in registers and streamed at once, as a line
// that is written in two goes costs as much as two. Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policy/thresholds.h"
#include "reorder/leaf/any_tile.h"
#include "reorder/leaf/byte_elements.h"
#include "reorder/leaf/registers.h"

namespace tilework {
namespace {

struct StreamedLanes {
  // kNone where the tile is of another kind.
  static Way way_of(const Tile& tile) {
    if (tile.stores != Stores::kStreaming || tile.zero_rows > 0) return Way::kNone;
    if (!is_aligned(tile.destination, kLineBytes)) return Way::kNone;
    if (tile.destination_column == tile.rows * kUnit && tile.rows % 2 == 0 && tile.rows <= kFollowedLanes)
      return Way::kJoinedLanes;
    const bool has_lines = tile.destination_column % kLineBytes == 0 && tile.rows >= kUnitsOfLine;
    if (!has_lines || tile.columns > kFollowedLanes || tile.source_row > kNearLaneBytes) return Way::kNone;
    return Way::kDividedLanes;
  }

  // False where the way is none of its own.
  static bool run(Way way, const Tile& tile) {
    switch (way) {
      case Way::kJoinedLanes:
        tile.rows > 2 ? put_together<true>(tile) : put_together<false>(tile);
        return true;
      case Way::kDividedLanes:
        take_apart(tile);
        return true;
      default:
        return false;
    }
  }

 private:
  static constexpr int64_t kUnit = sizeof(Unit128);
  static constexpr int64_t kUnitsOfLine = kLineBytes / kUnit;

  // A few rows go to contiguous columns. On Zen 5 prefetching took 0.6 of the time with four rows, and 1.2
  // times as long with two.
  template <bool kPrefetches>
  [[gnu::noinline]] static void put_together(const Tile tile) {
    TILEWORK_TAKES(Way::kJoinedLanes);
    uint8_t* to = tile.destination;
    for (int64_t c = 0; c < tile.columns; ++c) {
      const uint8_t* from = tile.source + c * kUnit;
      if (kPrefetches && c % kUnitsOfLine == 0) fetch_ahead(from, tile.source_row, tile.rows);
      for (int64_t r = 0; r < tile.rows; r += 2, to += 2 * kUnit, from += 2 * tile.source_row) {
        stream32(to, load_lanes(from, from + tile.source_row));
      }
    }
  }

  static void fetch_ahead(const uint8_t* from, int64_t row, int64_t rows) {
    constexpr int64_t kAheadBytes = 4096;
    for (int64_t r = 0; r < rows; ++r) __builtin_prefetch(from + r * row + kAheadBytes, 0, kSecondLevel);
  }

  // A line of each column in turn.
  [[gnu::noinline]] static void take_apart(const Tile tile) {
    TILEWORK_TAKES(Way::kDividedLanes);
    const int64_t whole = tile.rows / kUnitsOfLine * kUnitsOfLine;
    for (int64_t r = 0; r < whole; r += kUnitsOfLine) {
      for (int64_t c = 0; c < tile.columns; ++c) {
        const uint8_t* from = tile.source + r * tile.source_row + c * kUnit;
        uint8_t* to = tile.destination + c * tile.destination_column + r * kUnit;
        stream32(to, load_lanes(from, from + tile.source_row));
        stream32(to + 32, load_lanes(from + 2 * tile.source_row, from + 3 * tile.source_row));
      }
    }
    Tile rest = tile;
    rest.rows -= whole;
    rest.source += whole * tile.source_row;
    rest.destination += whole * kUnit;
    NarrowTranspose<Unit128>::run(rest);
  }
};

}  // namespace
}  // namespace tilework
