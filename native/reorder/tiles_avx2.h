// The special ways of tiles with AVX2. Included only by files that are compiled for it.
#pragma once

#include <cstdint>

#include "reorder/blocks_avx2.h"
#include "reorder/channels.h"
#include "reorder/channels_avx2.h"
#include "reorder/padded_pixels_avx2.h"
#include "reorder/streamed_blocks_avx2.h"

namespace tilework {
namespace {

// Ways to move a tile that are not register blocks alone, special ones first.
template <class T>
struct SpecialTiles : Channels<T, PixelsAvx2<T>> {
  static bool run(const Tile& tile) {
    if constexpr (sizeof(T) <= 4) {
      if (PaddedPixels<T>::run(tile)) return true;
    }
    if (StreamedBlocks<T>::run(tile)) return true;
    return Channels<T, PixelsAvx2<T>>::run(tile);
  }
};

}  // namespace
}  // namespace tilework
