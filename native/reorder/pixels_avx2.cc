// The kernels of pixels.h for AVX2, F16C and FMA. Only this file is compiled for them.
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "reorder/pixels.h"

namespace tilework {
namespace {

// Pixels of a vector.
constexpr int64_t kPixels = 16;

const __m128i* at_byte(const uint8_t* bytes) { return reinterpret_cast<const __m128i*>(bytes); }

// The first byte of each of 16 pixels. Reads 16 pixels; the first byte of the next one follows them.
template <int kChannels>
[[gnu::always_inline]] inline __m128i deinterleaved(const uint8_t* source) {
  if constexpr (kChannels == 3) {
    const __m128i low = _mm_setr_epi8(0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i middle = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1);
    const __m128i high = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13);
    return _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(_mm_loadu_si128(at_byte(source)), low),
                                     _mm_shuffle_epi8(_mm_loadu_si128(at_byte(source + 16)), middle)),
                        _mm_shuffle_epi8(_mm_loadu_si128(at_byte(source + 32)), high));
  } else {
    const __m128i firsts = _mm_set1_epi32(0xff);
    const auto four = [&](int64_t at) {
      return _mm_and_si128(_mm_loadu_si128(at_byte(source + at)), firsts);
    };
    return _mm_packus_epi16(_mm_packus_epi32(four(0), four(16)), _mm_packus_epi32(four(32), four(48)));
  }
}

template <class Out>
[[gnu::always_inline]] inline void store(uint8_t* destination, __m256i value, bool streams) {
  auto* to = reinterpret_cast<__m256i*>(destination);
  if (streams) {
    _mm256_stream_si256(to, value);
  } else {
    _mm256_storeu_si256(to, value);
  }
}

// Size of `Out` is 4 for float32 and 2 for float16.
template <class Out>
[[gnu::always_inline]] inline void put(uint8_t* destination, __m128i pixels, __m256 scale, __m256 offset,
                                       bool streams) {
  const __m256 low = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(pixels)), scale, offset);
  const __m256 high =
      _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(pixels, 8))), scale, offset);
  if constexpr (sizeof(Out) == 4) {
    store<Out>(destination, _mm256_castps_si256(low), streams);
    store<Out>(destination + 32, _mm256_castps_si256(high), streams);
  } else {
    constexpr int kNearestEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    store<Out>(destination,
               _mm256_set_m128i(_mm256_cvtps_ph(high, kNearestEven), _mm256_cvtps_ph(low, kNearestEven)),
               streams);
  }
}

// Up to 16 pixels, byte by byte: what a vector would read or write beyond is not ours.
template <class Out>
void put_some(const PixelRow& row, int64_t at, int64_t count, __m256 scale, __m256 offset) {
  alignas(16) uint8_t pixels[kPixels] = {};
  alignas(32) uint8_t made[kPixels * sizeof(Out)];
  for (int64_t i = 0; i < count; ++i) pixels[i] = row.source[(at + i) * row.channels];
  put<Out>(made, _mm_load_si128(at_byte(pixels)), scale, offset, false);
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Out));
  std::memcpy(row.destination + at * kBytes, made, static_cast<size_t>(count * kBytes));
}

template <class Out, int kChannels>
void run_row(const PixelRow& row) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Out));
  constexpr int64_t kVector = 32;
  const __m256 scale = _mm256_set1_ps(row.scale);
  const __m256 offset = _mm256_set1_ps(row.offset);
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(row.destination) % kVector);
  const bool streams = row.stores == Stores::kStreaming && past % kBytes == 0;
  int64_t at = 0;
  if (streams && past != 0) {
    at = std::min((kVector - past) / kBytes, row.count);
    put_some<Out>(row, 0, at, scale, offset);
  }
  const auto run_vectors = [&](bool is_streamed) {
    // A pixel follows, so a vector reads no byte behind the last one.
    for (; at + kPixels < row.count; at += kPixels) {
      put<Out>(row.destination + at * kBytes, deinterleaved<kChannels>(row.source + at * kChannels), scale,
               offset, is_streamed);
    }
  };
  if (streams) {
    run_vectors(true);
  } else {
    run_vectors(false);
  }
  while (at < row.count) {
    const int64_t count = std::min(kPixels, row.count - at);
    put_some<Out>(row, at, count, scale, offset);
    at += count;
  }
}

template <class Out>
void run_channels(const PixelRow& row) {
  if (row.channels == 3) {
    run_row<Out, 3>(row);
  } else {
    run_row<Out, 4>(row);
  }
}

}  // namespace

void pixels_to_float32__avx2(const PixelRow& row) { run_channels<float>(row); }
void pixels_to_float16__avx2(const PixelRow& row) { run_channels<uint16_t>(row); }

}  // namespace tilework
