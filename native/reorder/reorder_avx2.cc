// Tile transposes and copies with AVX2. This file is compiled for it, so it must not be entered on another
// processor, and must not define anything that others might link to: all of it but the kernels is internal.
#include "reorder/kernels.h"
#include "reorder/leaves.h"
#include "reorder/nibble_leaves.h"
#include "reorder/pack_avx2.h"
#include "reorder/run_copy.h"
#include "reorder/streamed_lanes_avx2.h"
#include "reorder/tiles_avx2.h"

namespace tilework {
namespace {

struct Avx2 {
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

constexpr Leaves kLeaves{PanelLeaves<Avx2>::of, PanelLeaves<Avx2>::of_runs, NibbleLeaves<Avx2>::of,
                         NibbleLeaves<Avx2>::of_runs, stream_lines};

// Streaming stores are not ordered with those that tell others that the work is done.
void end_streaming(const ReorderArguments& arguments) {
  if (arguments.stores == Stores::kStreaming) _mm_sfence();
}

}  // namespace

const Leaves& leaves_avx2() { return kLeaves; }

void reorder_tiles_avx2(const ReorderArguments& a) {
  run_programs(a, kLeaves);
  end_streaming(a);
}

void copy_avx2(const ReorderArguments& a) {
  copy_run(a.destination, a.source + *a.plan.copy_offset() + a.begin, a.end - a.begin, a.stores);
  a.plan.clear_unused_bits(a.destination, a.begin, a.end);
  end_streaming(a);
}

}  // namespace tilework
