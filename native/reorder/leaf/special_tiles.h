// The special ways of tiles in registers. Internal to each file, as transpose_places.h.
#pragma once

#include <cstdint>

#include "reorder/leaf/blocks.h"
#include "reorder/leaf/channels.h"
#include "reorder/leaf/padded_pixels.h"
#include "reorder/leaf/pixel_groups.h"
#include "reorder/leaf/streamed_blocks.h"

namespace tilework {
namespace {

// Ways to move a tile that are not register blocks alone, special ones first.
template <class T>
struct SpecialTiles {
  // kNone where the tile is of another kind.
  static Way way_of(const Tile& tile) {
    if constexpr (sizeof(T) <= 4) {
      const Way way = PaddedPixels<T>::way_of(tile);
      if (way != Way::kNone) return way;
    }
    if (StreamedBlocks<T>::fits(tile)) return Way::kStreamedBlocks;
    return Channels<T, PixelGroups<T>>::way_of(tile);
  }

  // False where the way is none of its own.
  static bool run(Way way, const Tile& tile) {
    switch (way) {
      case Way::kPaddedPixels:
      case Way::kPaddedPlanes:
        if constexpr (sizeof(T) <= 4) PaddedPixels<T>::run(way, tile);
        return true;
      case Way::kStreamedBlocks:
        StreamedBlocks<T>::run(tile);
        return true;
      case Way::kInterleavedPixels:
      case Way::kDividedPixels:
        Channels<T, PixelGroups<T>>::run(way, tile);
        return true;
      default:
        return false;
    }
  }
};

}  // namespace
}  // namespace tilework
