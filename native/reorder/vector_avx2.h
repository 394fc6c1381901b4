// The vector of run_copy.h with AVX2. Included only by files that are compiled for it.
#pragma once

#include <cstdint>

#include "reorder/registers_avx2.h"

namespace tilework {
namespace {

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
