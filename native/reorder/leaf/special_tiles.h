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
struct SpecialTiles : Channels<T, PixelGroups<T>> {
  static bool run(const Tile& tile) {
    if constexpr (sizeof(T) <= 4) {
      if (PaddedPixels<T>::run(tile)) return true;
    }
    if (StreamedBlocks<T>::run(tile)) return true;
    return Channels<T, PixelGroups<T>>::run(tile);
  }
};

}  // namespace
}  // namespace tilework
