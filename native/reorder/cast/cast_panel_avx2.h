// Panels that are cast in the register blocks of a pair of types. Shared by cast_tiles_avx2.cc and
// cast_tiles_avx512.cc, internal to each.
#pragma once

#include "dtype/lanes_avx2.h"
#include "policy/thresholds.h"
#include "reorder/cast/cast_tiles.h"
#include "reorder/leaf/block_transpose.h"
#include "reorder/leaf/blocks.h"
#include "reorder/leaf/panel_steps.h"
#include "reorder/leaf/streamed_blocks.h"

namespace tilework {
namespace {

// Float32 to 8 bits.
template <Dtype to>
struct QuarteringLoad {
  using Unit = uint8_t;
  static constexpr int64_t kSourceSize = 4;
  TILEWORK_INLINE static __m256i whole(const uint8_t* at) { return halves(at, at + 64); }
  TILEWORK_INLINE static __m256i halves(const uint8_t* low, const uint8_t* high) {
    return encode_bytes<to>({{floats_of(load32(low)), floats_of(load32(low + 32)), floats_of(load32(high)),
                              floats_of(load32(high + 32))}});
  }
};

// Short rows that lie side by side in memory are read front to back through a buffer: processors follow
// that by themselves, and a quarter of the bytes is left for the buffer. Float32 to int8: 17 instead of 12.5
// GB/s; to 16 bits it is no faster.
template <class Load>
bool reads_front_to_back(const Panel& panel) {
  constexpr bool kIsQuarter = Load::kSourceSize == 4 * int64_t{sizeof(typename Load::Unit)};
  return kIsQuarter && panel.stores == Stores::kStreaming &&
         panel.columns * panel.unit_bytes <= kMostDenseBytes &&
         panel.row_stride == panel.columns * Load::kSourceSize;
}

// The blocks of a pair of types. `Wide` ones come later where rows share sets of the cache, as what they
// leave of a line would be read again (of blocks that read whole lines a set takes four times as many), and
// where they are too high to stream whole lines.
template <class Load, class Wide, class Narrow, class Half>
class CastPanels {
 public:
  static bool fits(const Panel& panel) {
    const Panel one = merged(panel);
    return !reads_front_to_back<Load>(one) && with_block_of(one, [](auto) {});
  }

  static void run(const Panel& panel) {
    const Panel one = merged(panel);
    with_block_of(one, [&](auto block) {
      using Blocks = BlockTranspose<typename decltype(block)::type>;
      at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
        const Tile tile = tile_of(one, source, destination);
        using Streamed = StreamedBlocks<typename Load::Unit, Load>;
        Streamed::fits(tile) ? Streamed::run(tile) : Blocks::run(Blocks::way_of(tile), tile);
      });
    });
  }

 private:
  template <class Body>
  static bool with_block_of(const Panel& one, Body body) {
    constexpr int64_t kLineRows = kLineBytes / int64_t{sizeof(typename Load::Unit)};
    constexpr bool kReadsLines = Wide::kColumns * Load::kSourceSize == kLineBytes;
    const bool is_high = one.stores == Stores::kStreaming && kLineRows % Wide::kRows != 0;
    const bool is_crowded = crowds_sets(one.row_stride, kReadsLines ? Wide::kRows / 4 : Wide::kRows);
    if (is_high || is_crowded) return with_block<Narrow, Half, Wide>(one.rows, one.columns, body);
    return with_block<Wide, Narrow, Half>(one.rows, one.columns, body);
  }
};

template <class Load, class Wide, class Narrow, class Half>
constexpr CastLeaf kLeafOf{CastPanels<Load, Wide, Narrow, Half>::fits,
                           CastPanels<Load, Wide, Narrow, Half>::run};

template <class Load, class T = typename Load::Unit>
constexpr CastLeaf kLeaf = kLeafOf<Load, WideBlock<T, Load>, NarrowBlock<T, Load>, HalfBlock<T, Load>>;

}  // namespace
}  // namespace tilework
