// The registers of AVX2, for registers.h. Included by files that are compiled for it only.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/registers_avx2.h"
#include "reorder/leaf/cache_lines.h"

namespace tilework {
namespace {

using Lane = __m128i;
using Register = __m256i;

// 16 bytes in each lane.
inline Register load_lanes(const uint8_t* low, const uint8_t* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low)), load16(high), 1);
}

TILEWORK_INLINE Register zeros() { return _mm256_setzero_si256(); }

TILEWORK_INLINE Register combine(Lane low, Lane high) { return _mm256_set_m128i(high, low); }
TILEWORK_INLINE Lane low_lane(Register all) { return _mm256_castsi256_si128(all); }
TILEWORK_INLINE Lane high_lane(Register all) { return _mm256_extracti128_si256(all, 1); }

// The low, or the high, lanes of two registers.
TILEWORK_INLINE Register low_lanes(Register a, Register b) { return _mm256_permute2x128_si256(a, b, 0x20); }
TILEWORK_INLINE Register high_lanes(Register a, Register b) { return _mm256_permute2x128_si256(a, b, 0x31); }

// Halves of the lanes: the first ones in the low lane, the second ones in the high lane.
TILEWORK_INLINE Register part_lanes(Register all) { return _mm256_permute4x64_epi64(all, 0b11011000); }

// Of each lane, every second unit of 4 bytes: those of a, then those of b.
TILEWORK_INLINE Register even_words(Register a, Register b) {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}

// Interleaves units of `kSize` bytes of the low, or of the high, halves of the lanes.
template <int kSize>
TILEWORK_INLINE Register unpack_low(Register a, Register b) {
  if constexpr (kSize == 1) return _mm256_unpacklo_epi8(a, b);
  if constexpr (kSize == 2) return _mm256_unpacklo_epi16(a, b);
  if constexpr (kSize == 4) return _mm256_unpacklo_epi32(a, b);
  if constexpr (kSize == 8) return _mm256_unpacklo_epi64(a, b);
}

template <int kSize>
TILEWORK_INLINE Register unpack_high(Register a, Register b) {
  if constexpr (kSize == 1) return _mm256_unpackhi_epi8(a, b);
  if constexpr (kSize == 2) return _mm256_unpackhi_epi16(a, b);
  if constexpr (kSize == 4) return _mm256_unpackhi_epi32(a, b);
  if constexpr (kSize == 8) return _mm256_unpackhi_epi64(a, b);
}

// Bytes of each lane at `places`, 16 of them; zero where the highest bit of a place is set.
TILEWORK_INLINE Register shuffle_lanes(Register all, const uint8_t* places) {
  return _mm256_shuffle_epi8(all, _mm256_broadcastsi128_si256(load16(places)));
}
TILEWORK_INLINE Register either(Register a, Register b) { return _mm256_or_si256(a, b); }

// Both halves of a lane, each to a place of its own.
TILEWORK_INLINE void store_halves(uint8_t* first, uint8_t* second, Lane lane) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(first), lane);
  // One instruction all the same; the intrinsic for it wants an aligned place.
  const __m128d doubles = _mm_castsi128_pd(lane);
  const double high = _mm_cvtsd_f64(_mm_unpackhi_pd(doubles, doubles));
  std::memcpy(second, &high, sizeof(high));
}

inline void put16(uint8_t* at, Lane value, bool streams) {
  if (streams) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(at), value);
  } else {
    store16(at, value);
  }
}

// To any place that 16 bytes are aligned to: the memory that Node gives begins 16 bytes behind a line. Two
// halves where one store will do take twice the time of the few buffers that streamed lines wait in.
TILEWORK_INLINE void stream32(uint8_t* at, Register value) {
  if (is_aligned(at, 32)) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(at), value);
    return;
  }
  put16(at, low_lane(value), true);
  put16(at + 16, high_lane(value), true);
}

}  // namespace
}  // namespace tilework
