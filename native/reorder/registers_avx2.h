// Registers of AVX2: how they are read and written, and how the units in them are transposed, interleaved and
// taken apart. Included by files that are compiled for AVX2 only.
//
// The unpack instructions work inside 16-byte lanes. For powers of two, interleaving is a rotation of the
// bits of an element's place, and so is each step of a transpose (see step): the same steps do all of it.
// Three rows are put together from byte shuffles.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "cpu/registers_avx2.h"
#include "reorder/cache_lines.h"

namespace tilework {
namespace {

// 16 bytes in each lane.
inline __m256i load_lanes(const uint8_t* low, const uint8_t* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low)), load16(high), 1);
}

// Interleaves units of `kSize` bytes of the low, or of the high, halves of the lanes.
template <int kSize>
TILEWORK_INLINE __m256i unpack_low(__m256i a, __m256i b) {
  if constexpr (kSize == 1) return _mm256_unpacklo_epi8(a, b);
  if constexpr (kSize == 2) return _mm256_unpacklo_epi16(a, b);
  if constexpr (kSize == 4) return _mm256_unpacklo_epi32(a, b);
  if constexpr (kSize == 8) return _mm256_unpacklo_epi64(a, b);
}

template <int kSize>
TILEWORK_INLINE __m256i unpack_high(__m256i a, __m256i b) {
  if constexpr (kSize == 1) return _mm256_unpackhi_epi8(a, b);
  if constexpr (kSize == 2) return _mm256_unpackhi_epi16(a, b);
  if constexpr (kSize == 4) return _mm256_unpackhi_epi32(a, b);
  if constexpr (kSize == 8) return _mm256_unpackhi_epi64(a, b);
}

// One step of a transpose: row r meets row r + half. Doing that log2(n) times, always with units of the same
// size, turns n rows of n units into n columns, in each lane for itself.
template <int kSize, int kCount>
TILEWORK_INLINE void step(__m256i (&rows)[kCount]) {
  __m256i next[kCount];
  for (int r = 0; r < kCount / 2; ++r) {
    next[2 * r] = unpack_low<kSize>(rows[r], rows[r + kCount / 2]);
    next[2 * r + 1] = unpack_high<kSize>(rows[r], rows[r + kCount / 2]);
  }
  for (int r = 0; r < kCount; ++r) rows[r] = next[r];
}

template <int kSize, int kCount>
TILEWORK_INLINE void transpose_lanes(__m256i (&rows)[kCount]) {
  static_assert(kSize * kCount == 16);
  for (int done = 1; done < kCount; done *= 2) step<kSize>(rows);
}

// For each pair of a register that is made and a register that it is made from: where its 16 bytes come from;
// 0x80 gives zero, so that the three are put together by OR.
using Shuffles = std::array<std::array<std::array<uint8_t, 16>, 3>, 3>;

// Place of a byte of three interleaved rows: which row, and where in it.
constexpr Shuffles three_way_shuffles(int size, bool interleaves) {
  Shuffles shuffles{};
  for (auto& made : shuffles)
    for (auto& from : made) from.fill(0x80);
  for (int place = 0; place < 48; ++place) {
    const int unit = place / size;
    const int row = unit % 3;
    const int inside = unit / 3 * size + place % size;
    const auto whole = static_cast<size_t>(place / 16);
    if (interleaves) {
      shuffles[whole][static_cast<size_t>(row)][static_cast<size_t>(place % 16)] =
          static_cast<uint8_t>(inside);
    } else {
      shuffles[static_cast<size_t>(row)][whole][static_cast<size_t>(inside)] =
          static_cast<uint8_t>(place % 16);
    }
  }
  return shuffles;
}

template <int kSize, bool kInterleaves>
struct ThreeWay {
  static constexpr Shuffles kShuffles = three_way_shuffles(kSize, kInterleaves);
  TILEWORK_INLINE static void run(__m256i (&registers)[3]) {
    __m256i made[3];
    for (size_t m = 0; m < 3; ++m) {
      made[m] = _mm256_setzero_si256();
      for (size_t f = 0; f < 3; ++f) {
        const __m256i places = _mm256_broadcastsi128_si256(load16(kShuffles[m][f].data()));
        made[m] = _mm256_or_si256(made[m], _mm256_shuffle_epi8(registers[f], places));
      }
    }
    for (int m = 0; m < 3; ++m) registers[m] = made[m];
  }
};

template <int kSize, int kCount>
TILEWORK_INLINE void interleave(__m256i (&rows)[kCount]) {
  if constexpr (kCount == 3) {
    ThreeWay<kSize, true>::run(rows);
  } else {
    for (int done = 1; done < kCount; done *= 2) step<kSize>(rows);
  }
}

template <int kSize, int kCount>
TILEWORK_INLINE void take_apart(__m256i (&pixels)[kCount]) {
  if constexpr (kCount == 3) {
    ThreeWay<kSize, false>::run(pixels);
  } else {
    for (int done = kSize; done < 16; done *= 2) step<kSize>(pixels);
  }
}

inline void put16(uint8_t* at, __m128i value, bool streams) {
  if (streams) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(at), value);
  } else {
    store16(at, value);
  }
}

// To any place that 16 bytes are aligned to: the memory that Node gives begins 16 bytes behind a line. Two
// halves where one store will do take twice the time of the few buffers that streamed lines wait in.
TILEWORK_INLINE void stream32(uint8_t* at, __m256i value) {
  if (is_aligned(at, 32)) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(at), value);
    return;
  }
  put16(at, _mm256_castsi256_si128(value), true);
  put16(at + 16, _mm256_extracti128_si256(value, 1), true);
}

}  // namespace
}  // namespace tilework
