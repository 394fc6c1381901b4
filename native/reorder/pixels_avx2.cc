// The kernels of pixels.h for AVX2, F16C and FMA. Only this file is compiled for them.
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "dtype/lanes_avx2.h"
#include "reorder/pixels.h"

namespace tilework {
namespace {

// Pixels that are written at a time, and those behind them of which bytes are read.
constexpr int64_t kPixels = 16;
constexpr int64_t kPixelsBehind = 2;

// The first byte of each of eight pixels. Reads less than 8 + kPixelsBehind pixels, and of the last of them
// no more than its first byte.
template <int kChannels>
TILEWORK_INLINE __m256 lanes_of_pixels(const uint8_t* source) {
  // Four pixels in each half, whose bytes become 32-bit lanes.
  const __m256i bytes =
      _mm256_inserti128_si256(_mm256_castsi128_si256(load16(source)), load16(source + 4 * kChannels), 1);
  const __m128i firsts = kChannels == 3
                             ? _mm_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1)
                             : _mm_setr_epi8(0, -1, -1, -1, 4, -1, -1, -1, 8, -1, -1, -1, 12, -1, -1, -1);
  return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(firsts)));
}

TILEWORK_INLINE void store(uint8_t* destination, __m256i value, bool streams) {
  if (streams) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(destination), value);
  } else {
    store32(destination, value);
  }
}

// 16 values. Size of `Out` is 4 for float32 and 2 for float16.
template <class Out>
TILEWORK_INLINE void put(uint8_t* destination, __m256 low, __m256 high, bool streams) {
  if constexpr (sizeof(Out) == 4) {
    store(destination, _mm256_castps_si256(low), streams);
    store(destination + 32, _mm256_castps_si256(high), streams);
  } else {
    constexpr int kNearestEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    const __m256i codes =
        _mm256_set_m128i(_mm256_cvtps_ph(high, kNearestEven), _mm256_cvtps_ph(low, kNearestEven));
    store(destination, codes, streams);
  }
}

// What becomes of the lanes of pixels.
struct Affine {
  __m256 scale;
  __m256 offset;
  TILEWORK_INLINE __m256 operator()(__m256 pixels) const { return _mm256_fmadd_ps(pixels, scale, offset); }
};

// Up to 16 pixels, byte by byte: what a vector would read or write beyond is not ours.
template <class Out>
void put_some(const PixelRow& row, int64_t at, int64_t count, Affine affine) {
  uint8_t pixels[kPixels] = {};
  alignas(32) uint8_t made[kPixels * sizeof(Out)];
  for (int64_t i = 0; i < count; ++i) pixels[i] = row.source[(at + i) * row.channels];
  put<Out>(made, affine(decode_lanes<Dtype::kUint8>(load8(pixels))),
           affine(decode_lanes<Dtype::kUint8>(load8(pixels + 8))), false);
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Out));
  std::memcpy(row.destination + at * kBytes, made, static_cast<size_t>(count * kBytes));
}

template <class Out, int kChannels>
void run_row(const PixelRow& row) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Out));
  constexpr int64_t kVector = 32;
  const Affine affine{_mm256_set1_ps(row.scale), _mm256_set1_ps(row.offset)};
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(row.destination) % kVector);
  const bool streams = row.stores == Stores::kStreaming && past % kBytes == 0;
  const int64_t count = row.count;
  int64_t at = 0;
  if (streams && past != 0) {
    at = std::min((kVector - past) / kBytes, count);
    put_some<Out>(row, 0, at, affine);
  }
  // Copies: stores of bytes may change any object that others can see.
  const uint8_t* source = row.source;
  uint8_t* destination = row.destination;
  const auto run_vectors = [&](bool is_streamed) {
    for (; at + kPixels + kPixelsBehind <= count; at += kPixels) {
      const uint8_t* from = source + at * kChannels;
      put<Out>(destination + at * kBytes, affine(lanes_of_pixels<kChannels>(from)),
               affine(lanes_of_pixels<kChannels>(from + kPixels / 2 * kChannels)), is_streamed);
    }
  };
  if (streams) {
    run_vectors(true);
  } else {
    run_vectors(false);
  }
  while (at < count) {
    const int64_t some = std::min(kPixels, count - at);
    put_some<Out>(row, at, some, affine);
    at += some;
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

void pixels_to_float32_avx2(const PixelRow& row) { run_channels<float>(row); }
void pixels_to_float16_avx2(const PixelRow& row) { run_channels<uint16_t>(row); }

}  // namespace tilework
