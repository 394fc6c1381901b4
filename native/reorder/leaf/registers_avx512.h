// Lines in registers of AVX-512. Internal to each file, as transpose_places.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "cpu/registers_avx2.h"

namespace tilework {
namespace {

TILEWORK_INLINE __m512i load64(const uint8_t* at) { return _mm512_loadu_si512(at); }

TILEWORK_INLINE void store64(uint8_t* at, __m512i line) { _mm512_storeu_si512(at, line); }

template <int kSize>
TILEWORK_INLINE __m512i unpack_low(__m512i a, __m512i b) {
  if constexpr (kSize == 1) return _mm512_unpacklo_epi8(a, b);
  if constexpr (kSize == 4) return _mm512_unpacklo_epi32(a, b);
}

template <int kSize>
TILEWORK_INLINE __m512i unpack_high(__m512i a, __m512i b) {
  if constexpr (kSize == 1) return _mm512_unpackhi_epi8(a, b);
  if constexpr (kSize == 4) return _mm512_unpackhi_epi32(a, b);
}

// As in registers.h.
template <int kSize, int kCount>
TILEWORK_INLINE void step(__m512i (&rows)[kCount]) {
  __m512i next[kCount];
#pragma GCC unroll 8
  for (int r = 0; r < kCount / 2; ++r) {
    next[2 * r] = unpack_low<kSize>(rows[r], rows[r + kCount / 2]);
    next[2 * r + 1] = unpack_high<kSize>(rows[r], rows[r + kCount / 2]);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kCount; ++r) rows[r] = next[r];
}

// Lane i of line k becomes lane k of line i.
TILEWORK_INLINE void transpose_lanes(__m512i (&lines)[4]) {
  const __m512i a = _mm512_shuffle_i32x4(lines[0], lines[1], 0b01000100);
  const __m512i b = _mm512_shuffle_i32x4(lines[0], lines[1], 0b11101110);
  const __m512i c = _mm512_shuffle_i32x4(lines[2], lines[3], 0b01000100);
  const __m512i d = _mm512_shuffle_i32x4(lines[2], lines[3], 0b11101110);
  lines[0] = _mm512_shuffle_i32x4(a, c, 0b10001000);
  lines[1] = _mm512_shuffle_i32x4(a, c, 0b11011101);
  lines[2] = _mm512_shuffle_i32x4(b, d, 0b10001000);
  lines[3] = _mm512_shuffle_i32x4(b, d, 0b11011101);
}

}  // namespace
}  // namespace tilework
