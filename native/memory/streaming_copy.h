// A copy with stores that go past the caches, for results that are larger than these. Needs nothing but what
// every CPU of an architecture has; where that has no such stores it is an ordinary copy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tilework {

// Streaming stores do not read the lines they write and keep nothing of them in the caches. They pay where
// source and destination are larger than the caches and nobody reads the destination soon.
enum class Stores { kCached, kStreaming };

// Places that do not overlap; any size and address. Call end_streaming before others read what was written.
inline void copy_streaming(uint8_t* destination, const uint8_t* source, int64_t size) {
  int64_t i = 0;
#if defined(__SSE2__)
  constexpr int64_t kVector = 16;
  constexpr int64_t kLine = 64;
  // Whole lines: a part of one would be merged with what memory holds.
  const auto past_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(destination) % kLine);
  i = std::min((kLine - past_line) % kLine, size);
  std::memcpy(destination, source, static_cast<size_t>(i));
  for (; i + kLine <= size; i += kLine) {
    for (int64_t k = i; k < i + kLine; k += kVector) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(destination + k),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + k)));
    }
  }
#endif
  std::memcpy(destination + i, source + i, static_cast<size_t>(size - i));
}

// Streaming stores are not ordered with others: this puts them before all that follows.
inline void end_streaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace tilework
