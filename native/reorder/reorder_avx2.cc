// Tile transposes and copies with AVX2. This file is compiled for it, so it must not be entered on another
// processor, and must not define anything that others might link to: all of it but the kernels is internal.
#include "reorder/kernels.h"
#include "reorder/listed_transpose.h"
#include "reorder/nest_walk.h"
#include "reorder/nibble_transpose.h"
#include "reorder/run_copy.h"
#include "reorder/run_kernel.h"
#include "reorder/streamed_lanes_avx2.h"
#include "reorder/tile_kernel.h"
#include "reorder/tiles_avx2.h"

namespace tilework {
namespace {

template <class T>
using Tiles = TileKernel<WideBlock<T>, NarrowBlock<T>, SpecialTiles<T>, HalfOrNone<T>, ThinOrNone<T>>;

// Streaming stores are not ordered with those that tell others that the work is done.
void end_streaming(const ReorderArguments& arguments) {
  if (arguments.stores == Stores::kStreaming) _mm_sfence();
}

template <class T, class Kernel = Tiles<T>>
void run_tiles(const ReorderArguments& arguments) {
  walk_bytes<T, Kernel>(arguments);
  end_streaming(arguments);
}

template <class T>
void run_runs(const ReorderArguments& arguments) {
  walk_bytes<T, RunKernel<Vector, T>>(arguments);
  end_streaming(arguments);
}

}  // namespace

void reorder_x8_tiles__avx2(const ReorderArguments& a) { run_tiles<uint8_t>(a); }
void reorder_x16_tiles__avx2(const ReorderArguments& a) { run_tiles<uint16_t>(a); }
void reorder_x32_tiles__avx2(const ReorderArguments& a) { run_tiles<uint32_t>(a); }
void reorder_x64_tiles__avx2(const ReorderArguments& a) { run_tiles<uint64_t>(a); }
void reorder_x128_tiles__avx2(const ReorderArguments& a) {
  run_tiles<Unit128, TileKernel<LaneBlock, LaneBlock, StreamedLanes>>(a);
}

void reorder_x8_runs__avx2(const ReorderArguments& a) { run_runs<uint8_t>(a); }
void reorder_x16_runs__avx2(const ReorderArguments& a) { run_runs<uint16_t>(a); }
void reorder_x32_runs__avx2(const ReorderArguments& a) { run_runs<uint32_t>(a); }
void reorder_x64_runs__avx2(const ReorderArguments& a) { run_runs<uint64_t>(a); }
void reorder_x128_runs__avx2(const ReorderArguments& a) { run_runs<Unit128>(a); }

void transpose_listed_x4__avx2(const NibblePlaces& places, const uint8_t* source, uint8_t* destination,
                               uint8_t* pairs) {
  transpose_nibbles(places, transpose_listed_x8__avx2, source, destination, pairs);
}
void transpose_listed_x8__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<WideBlock<uint8_t>, NarrowBlock<uint8_t>>(places, source, destination);
}
void transpose_listed_x16__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<WideBlock<uint16_t>, NarrowBlock<uint16_t>>(places, source, destination);
}
void transpose_listed_x32__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<WideBlock<uint32_t>, NarrowBlock<uint32_t>>(places, source, destination);
}
void transpose_listed_x64__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<WideBlock<uint64_t>, NarrowBlock<uint64_t>>(places, source, destination);
}

void copy__avx2(const ReorderArguments& a) {
  copy_run<Vector>(a.destination, a.source + *a.plan.copy_offset() + a.begin, a.end - a.begin, a.stores);
  end_streaming(a);
}

}  // namespace tilework
