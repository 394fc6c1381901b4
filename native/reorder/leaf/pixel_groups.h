// Groups of pixels for channels.h in registers (registers.h). Internal to each file, as transpose_places.h.
#pragma once

#include <cstdint>

#include "reorder/leaf/registers.h"
#include "reorder/leaf/tile.h"

namespace tilework {
namespace {

// Each lane has a group of pixels for itself.
template <class T>
class PixelGroups {
 public:
  static constexpr int64_t kPixels = 32 / sizeof(T);

  template <int kCount, class Place>
  TILEWORK_INLINE static void interleave_pixels(const Tile& tile, int64_t valid, int64_t p, Place place) {
    Register rows[kCount];
    for (int r = 0; r < kCount; ++r) {
      const uint8_t* from = tile.source + r * tile.source_row + p * kSize;
      rows[r] = r < valid ? load32(from) : zeros();
    }
    interleave<kSize>(rows);
    uint8_t* low = place(p);
    uint8_t* high = place(p + kPixels / 2);
    const bool streams = tile.stores == Stores::kStreaming && is_aligned(low, 16) && is_aligned(high, 16);
    for (int r = 0; r < kCount; ++r) put16(low + r * 16, low_lane(rows[r]), streams);
    for (int r = 0; r < kCount; ++r) put16(high + r * 16, high_lane(rows[r]), streams);
  }

  template <int kCount, class Place>
  TILEWORK_INLINE static void take_pixels_apart(const Tile& tile, int64_t p, Place place) {
    Register pixels[kCount];
    take_group_apart<kCount>(p, place, pixels);
    for (int c = 0; c < kCount && c < tile.columns; ++c) {
      uint8_t* to = tile.destination + c * tile.destination_column + p * kSize;
      if (tile.stores == Stores::kStreaming && is_aligned(to, 16)) {
        stream32(to, pixels[c]);
      } else {
        store32(to, pixels[c]);
      }
    }
  }

  // A processor has few buffers for lines that are written past the caches, fewer still where two threads
  // share it: each line is written at once.
  template <int kCount, class Place>
  TILEWORK_INLINE static void take_lines_apart(const Tile& tile, int64_t p, Place place) {
    Register first[kCount];
    take_group_apart<kCount>(p, place, first);
    alignas(32) uint8_t lines[kCount * 32];
    for (int c = 0; c < kCount; ++c) store32(lines + c * 32, first[c]);
    Register second[kCount];
    take_group_apart<kCount>(p + kPixels, place, second);
    for (int c = 0; c < kCount && c < tile.columns; ++c) {
      uint8_t* to = tile.destination + c * tile.destination_column + p * kSize;
      const Register begin = load32(lines + c * 32);
      if (is_aligned(to, 16)) {
        stream32(to, begin);
        stream32(to + 32, second[c]);
      } else {
        store32(to, begin);
        store32(to + 32, second[c]);
      }
    }
  }

 private:
  // kPixels from pixel `p` on, channel by channel.
  template <int kCount, class Place>
  TILEWORK_INLINE static void take_group_apart(int64_t p, Place place, Register (&pixels)[kCount]) {
    const uint8_t* low = place(p);
    const uint8_t* high = place(p + kPixels / 2);
    for (int i = 0; i < kCount; ++i) pixels[i] = load_lanes(low + i * 16, high + i * 16);
    take_apart<kSize>(pixels);
  }

  static constexpr int kSize = sizeof(T);
};

}  // namespace
}  // namespace tilework
