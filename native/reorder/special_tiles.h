// The special ways of tiles in registers. Internal to each file, as transpose_places.h.
#pragma once

#include <cstdint>

#include "reorder/blocks.h"
#include "reorder/channels.h"
#include "reorder/padded_pixels.h"
#include "reorder/pixel_groups.h"
#include "reorder/streamed_blocks.h"

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
