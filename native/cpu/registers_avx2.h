// Loads and stores of AVX registers at any address. Included by files that are compiled for AVX2 only.
#pragma once

#include <immintrin.h>

#include <cstdint>

// What is written as arrays of registers are registers only where all of it is inlined, which the compiler is
// not sure of for so much code.
#define TILEWORK_INLINE [[gnu::always_inline]] inline

namespace tilework {
namespace {

TILEWORK_INLINE __m256i load32(const uint8_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

TILEWORK_INLINE __m128i load16(const uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

TILEWORK_INLINE __m128i load8(const uint8_t* at) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
}

TILEWORK_INLINE void store32(uint8_t* at, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), value);
}

TILEWORK_INLINE void store16(uint8_t* at, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at), value);
}

}  // namespace
}  // namespace tilework
