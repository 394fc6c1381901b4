// Interleaves 2, 3, 4 or 8 rows, and takes them apart again: images between planes and pixels. The walk over
// a tile is shared; each instruction set brings groups of pixels:
//
//   struct Groups {
//     static constexpr int64_t kPixels;
//     // kPixels of a tile from pixel `p` on: of the rows from `valid` on, which have no source, zeros.
//     // place(p) is where pixel p goes; as many pixels as 16 bytes of a row make follow it there.
//     template <int kCount, class Place>
//     static void interleave_pixels(const Tile& tile, int64_t valid, int64_t p, Place place);
//     // The way back; place(p) is where pixel p comes from.
//     template <int kCount, class Place>
//     static void take_pixels_apart(const Tile& tile, int64_t p, Place place);
//     // The same for 2 * kPixels, past the caches.
//     template <int kCount, class Place>
//     static void take_lines_apart(const Tile& tile, int64_t p, Place place);
//   };
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "policy/thresholds.h"
#include "reorder/leaf/tile.h"
#include "reorder/leaf/ways.h"

namespace tilework {
namespace {

template <class T, class Groups>
class Channels {
 public:
  // kNone where the tile is of another kind.
  static Way way_of(const Tile& tile) {
    if (tile.columns >= kPixels && tile.rows * kSize < kMostPixelBytes &&
        tile.destination_column == tile.rows * kSize) {
      return dispatch(tile.rows, [](auto) {}) ? Way::kInterleavedPixels : Way::kNone;
    }
    const int64_t slots = tile.source_row / kSize;
    if (tile.source_row % kSize != 0) return Way::kNone;
    if (tile.zero_rows > 0 || tile.rows <= kPixels || slots * kSize > kMostPixelBytes || tile.source_row <= 0)
      return Way::kNone;
    // Holes of eight bytes could be left out, and it would be wrong to read them.
    if (slots != tile.columns && (slots < tile.columns || kSize > 4)) return Way::kNone;
    return dispatch(slots, [](auto) {}) ? Way::kDividedPixels : Way::kNone;
  }

  // By one of its ways.
  static void run(Way way, const Tile& tile) {
    if (way == Way::kInterleavedPixels) {
      dispatch(tile.rows, [&](auto count) {
        constexpr int64_t kPixel = decltype(count)::value * kSize;
        interleave_all<decltype(count)::value>(
            tile, [to = tile.destination](int64_t p) { return to + p * kPixel; });
      });
      return;
    }
    dispatch(tile.source_row / kSize, [&](auto count) {
      constexpr int64_t kPixel = decltype(count)::value * kSize;
      take_all_apart<decltype(count)::value>(tile, 1,
                                             [from = tile.source](int64_t p) { return from + p * kPixel; });
    });
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kPixels = Groups::kPixels;
  template <class Body>
  static bool dispatch(int64_t count, Body body) {
    return one_of<2, 3, 4, 8>(count, body);
  }

  // Calls body with the one that `count` is; false where it is none.
  template <int... kCounts, class Body>
  static bool one_of(int64_t count, Body body) {
    return (... || is<kCounts>(count, body));
  }

  template <int kCount, class Body>
  static bool is(int64_t count, Body body) {
    if constexpr (kCount * kSize <= kMostPixelBytes.value) {
      if (count == kCount) body(std::integral_constant<int, kCount>{});
      return count == kCount;
    }
    return false;
  }

  template <int kCount, class Place>
  static void interleave_all(const Tile tile, Place place) {
    TILEWORK_TAKES(Way::kInterleavedPixels);
    const int64_t valid = tile.rows - tile.zero_rows;
    for (int64_t p = 0; p < tile.columns; p += kPixels) {
      Groups::template interleave_pixels<kCount>(tile, valid, std::min(p, tile.columns - kPixels), place);
    }
  }

  // Slots behind the last column are holes, and are read with the elements around them. None is behind the
  // last pixel, which may be the last byte of the memory: the last `alone` pixels are moved by element.
  template <int kCount, class Place>
  static void take_all_apart(const Tile tile, int64_t alone, Place place) {
    TILEWORK_TAKES(Way::kDividedPixels);
    const int64_t pixels = tile.columns == kCount ? tile.rows : tile.rows - alone;
    for (int64_t p = pixels; p < tile.rows; ++p) {
      for (int64_t c = 0; c < tile.columns; ++c) {
        std::memcpy(tile.destination + c * tile.destination_column + p * kSize, place(p) + c * kSize, kSize);
      }
    }
    int64_t p = 0;
    const int64_t whole = tile.stores == Stores::kStreaming ? pixels / (2 * kPixels) * (2 * kPixels) : 0;
    for (; p < whole; p += 2 * kPixels) Groups::template take_lines_apart<kCount>(tile, p, place);
    for (; p < pixels; p += kPixels) {
      Groups::template take_pixels_apart<kCount>(tile, std::min(p, pixels - kPixels), place);
    }
  }
};

}  // namespace
}  // namespace tilework
