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
  static void stream(uint8_t* destination, const uint8_t* source) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(destination), load32(source));
  }
};

}  // namespace
}  // namespace tilework
