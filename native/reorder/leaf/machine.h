// The machine of leaves.h with registers of 32 bytes. Internal to each file, as transpose_places.h.
#pragma once

#include "reorder/kernels.h"
#include "reorder/leaf/blocks.h"
#include "reorder/leaf/lanes.h"
#include "reorder/leaf/leaves.h"
#include "reorder/leaf/nibble_leaves.h"
#include "reorder/leaf/pack.h"
#include "reorder/leaf/run_copy.h"
#include "reorder/leaf/special_tiles.h"
#include "reorder/leaf/streamed_lanes.h"

namespace tilework {
namespace {

struct Registers {
  template <class T>
  using Wide = WideBlock<T>;
  template <class T>
  using Narrow = NarrowBlock<T>;
  template <class T>
  using Half = HalfOrNone<T>;
  template <class T>
  using Thin = ThinOrNone<T>;
  template <class T>
  using Special = SpecialTiles<T>;
  using LaneTiles = AnyTile<LaneBlock, LaneBlock, StreamedLanes>;
  static constexpr bool kPacks = true;
  template <class T, int kStep>
  static void pack(const uint8_t* source, uint8_t* packed, int64_t count) {
    pack_every<T, kStep>(source, packed, count);
  }
};

void stream_lines(uint8_t* destination, const uint8_t* source, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kVectorBytes) stream32(destination + i, source + i);
}

constexpr Leaves kLeaves{PanelLeaves<Registers>::of, PanelLeaves<Registers>::of_runs,
                         NibbleLeaves<Registers>::of, NibbleLeaves<Registers>::of_runs, stream_lines};

// The destination is one range of the source.
void copy_range(const ReorderArguments& a) {
  copy_run(a.destination, a.source + *a.plan.copy_offset() + a.begin, a.end - a.begin, a.stores);
  a.plan.clear_unused_bits(a.destination, a.begin, a.end);
}

}  // namespace
}  // namespace tilework
