// What tiles and runs are moved with on AVX2: the special ways of tiles, and the vector of run_copy.h.
// Included only by files that are compiled for AVX2.
#pragma once

#include <cstdint>

#include "reorder/blocks_avx2.h"
#include "reorder/channels.h"
#include "reorder/channels_avx2.h"
#include "reorder/odd_rows.h"
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
    if constexpr (sizeof(T) <= 4) {
      if (Channels<T, PixelsAvx2<T>>::run(tile)) return true;
      return OddRows<WideBlock<T>, NarrowBlock<T>, HalfBlock<T>>::run(tile);
    }
    return Channels<T, PixelsAvx2<T>>::run(tile);
  }
};

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

}  // namespace
}  // namespace tilework
