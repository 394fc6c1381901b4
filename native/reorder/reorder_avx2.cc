// Tile transposes and copies with AVX2. This file is compiled for it, so it must not be entered on another
// processor, and must not define anything that others might link to: all of it but the kernels is internal.
#include "reorder/blocks_avx2.h"
#include "reorder/channels.h"
#include "reorder/channels_avx2.h"
#include "reorder/kernels.h"
#include "reorder/listed_transpose.h"
#include "reorder/nest_walk.h"
#include "reorder/nibble_transpose.h"
#include "reorder/odd_rows.h"
#include "reorder/padded_pixels_avx2.h"
#include "reorder/run_copy.h"
#include "reorder/run_kernel.h"
#include "reorder/streamed_blocks_avx2.h"
#include "reorder/streamed_lanes_avx2.h"
#include "reorder/tile_kernel.h"

namespace tilework {
namespace {

// Ways of moving tiles that are no matter of blocks alone, the special ones first.
template <class T>
struct SpecialTiles : Channels<T, PixelsAvx2<T>> {
  static bool run(const Tile& tile) {
    if constexpr (sizeof(T) <= 4) {
      if (PaddedPixels<T>::run(tile) || StreamedBlocks<T>::run(tile)) return true;
      if (Channels<T, PixelsAvx2<T>>::run(tile)) return true;
      return OddRows<WideBlock<T>, NarrowBlock<T>, HalfBlock<T>>::run(tile);
    }
    return Channels<T, PixelsAvx2<T>>::run(tile);
  }
};

template <class T>
using Tiles = TileKernel<WideBlock<T>, NarrowBlock<T>, SpecialTiles<T>, HalfOrNone<T>, ThinOrNone<T>>;

struct Vector {
  static constexpr int64_t kBytes = 32;
  static void copy(uint8_t* destination, const uint8_t* source) { store32(destination, load32(source)); }
  static void copy_half(uint8_t* destination, const uint8_t* source) { store16(destination, load16(source)); }
  static void zero(uint8_t* destination) { store32(destination, _mm256_setzero_si256()); }
  static void zero_half(uint8_t* destination) { store16(destination, _mm_setzero_si128()); }
  static void stream_zero_half(uint8_t* destination) { put16(destination, _mm_setzero_si128(), true); }
  static void copy_masked(uint8_t* destination, const uint8_t* source, const uint8_t* mask) {
    store16(destination, _mm_and_si128(load16(source), load16(mask)));
  }
  static void copy_completed(uint8_t* destination, const uint8_t* source, const uint8_t* mask) {
    store32(destination, _mm256_zextsi128_si256(_mm_and_si128(load16(source), load16(mask))));
  }
  static void stream_masked(uint8_t* destination, const uint8_t* source, const uint8_t* mask) {
    put16(destination, _mm_and_si128(load16(source), load16(mask)), true);
  }
  static void stream(uint8_t* destination, const uint8_t* source) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(destination), load32(source));
  }
};

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
