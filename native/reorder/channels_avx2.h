// Groups of pixels for channels.h with AVX2. Included by reorder_avx2.cc only.
//
// For powers of two, interleaving is a rotation of the bits of an element's place, and so is each step of a
// transpose (see step): the same steps do both ways. Three rows are put together from byte shuffles.
#pragma once

#include <array>

namespace tilework {
namespace {

// For each pair of a register that is made and a register that it is made from: where its 16 bytes come from;
// 0x80 gives zero, so that the three are put together by OR.
using Shuffles = std::array<std::array<std::array<uint8_t, 16>, 3>, 3>;

// Place of a byte of three interleaved rows: which row, and where in it.
constexpr Shuffles shuffles_of(int size, bool interleaves) {
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
  static constexpr Shuffles kShuffles = shuffles_of(kSize, kInterleaves);
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

void put16(uint8_t* at, __m128i value, bool streams) {
  if (streams) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(at), value);
  } else {
    store16(at, value);
  }
}

// To any place that 16 bytes are aligned to: the memory that Node gives begins 16 bytes behind a line. Two
// halves where one store will do take twice the time of the few buffers that streamed lines wait in.
TILEWORK_INLINE void stream32(uint8_t* at, __m256i value) {
  if (reinterpret_cast<uintptr_t>(at) % 32 == 0) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(at), value);
    return;
  }
  put16(at, _mm256_castsi256_si128(value), true);
  put16(at + 16, _mm256_extracti128_si256(value, 1), true);
}

// Each lane has a group of pixels for itself.
template <class T>
class PixelsAvx2 {
 public:
  static constexpr int64_t kPixels = 32 / sizeof(T);

  template <int kCount, class Place>
  TILEWORK_INLINE static void interleave_pixels(const Tile& tile, int64_t valid, int64_t p, Place place) {
    __m256i rows[kCount];
    for (int r = 0; r < kCount; ++r) {
      const uint8_t* from = tile.source + r * tile.source_row + p * kSize;
      rows[r] = r < valid ? load32(from) : _mm256_setzero_si256();
    }
    interleave<kSize>(rows);
    uint8_t* low = place(p);
    uint8_t* high = place(p + kPixels / 2);
    const bool streams = tile.stores == Stores::kStreaming && is_aligned(low, 16) && is_aligned(high, 16);
    for (int r = 0; r < kCount; ++r) put16(low + r * 16, _mm256_castsi256_si128(rows[r]), streams);
    for (int r = 0; r < kCount; ++r) put16(high + r * 16, _mm256_extracti128_si256(rows[r], 1), streams);
  }

  template <int kCount, class Place>
  TILEWORK_INLINE static void take_pixels_apart(const Tile& tile, int64_t p, Place place) {
    __m256i pixels[kCount];
    take_group_apart<kCount>(p, place, pixels);
    for (int c = 0; c < kCount && c < tile.columns; ++c) {
      uint8_t* to = tile.destination + c * tile.destination_column + p * kSize;
      if (tile.stores == Stores::kStreaming && is_aligned(to, 16)) {
        stream32(to, pixels[c]);
      } else {
        store32(to, pixels[c]);
      }
    }
  }

  // A processor has few buffers for lines that are written past the caches, fewer still where two threads
  // share it: each line is written at once.
  static constexpr bool kTakesLines = true;
  template <int kCount, class Place>
  TILEWORK_INLINE static void take_lines_apart(const Tile& tile, int64_t p, Place place) {
    __m256i first[kCount];
    take_group_apart<kCount>(p, place, first);
    alignas(32) uint8_t lines[kCount * 32];
    for (int c = 0; c < kCount; ++c) store32(lines + c * 32, first[c]);
    __m256i second[kCount];
    take_group_apart<kCount>(p + kPixels, place, second);
    for (int c = 0; c < kCount && c < tile.columns; ++c) {
      uint8_t* to = tile.destination + c * tile.destination_column + p * kSize;
      const __m256i begin = load32(lines + c * 32);
      if (is_aligned(to, 16)) {
        stream32(to, begin);
        stream32(to + 32, second[c]);
      } else {
        store32(to, begin);
        store32(to + 32, second[c]);
      }
    }
  }

 private:
  // kPixels from pixel `p` on, channel by channel.
  template <int kCount, class Place>
  TILEWORK_INLINE static void take_group_apart(int64_t p, Place place, __m256i (&pixels)[kCount]) {
    const uint8_t* low = place(p);
    const uint8_t* high = place(p + kPixels / 2);
    for (int i = 0; i < kCount; ++i) pixels[i] = load_lanes(low + i * 16, high + i * 16);
    take_apart<kSize>(pixels);
  }

  static constexpr int kSize = sizeof(T);

  static bool is_aligned(const uint8_t* at, uintptr_t to) {
    return reinterpret_cast<uintptr_t>(at) % to == 0;
  }
};

}  // namespace
}  // namespace tilework
