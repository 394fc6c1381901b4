// Copies with streaming (non-temporal) stores for results larger than the caches. Uses only the baseline of
// the architecture; without streaming stores it is an ordinary copy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tilework {

// Streaming stores neither read the destination lines nor keep them in the caches. They pay off where source
// and destination are larger than the caches and nobody reads the destination soon.
enum class Stores { kCached, kStreaming };

// The ranges must not overlap; any size and address. Call end_streaming before others read the destination.
inline void copy_streaming(uint8_t* destination, const uint8_t* source, int64_t size) {
  int64_t i = 0;
#if defined(__SSE2__)
  constexpr int64_t kVector = 16;
  constexpr int64_t kLine = 64;
  // Whole lines only: a partial line would be merged with memory.
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

// Streaming stores are weakly ordered; this fence orders them before everything that follows.
inline void end_streaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace tilework
