#include "dtype/magnitudes.h"

#include <algorithm>
#include <bit>

namespace tilework {
namespace {

// A lane of int32 counts the numbers of a chunk.
constexpr int64_t kChunk = 4096;

// Magnitudes of floats compare as their bits do. Written without branches, so that compilers vectorise the
// loop.
ClipCounts clip_chunk(float* numbers, int64_t count, int32_t low, int32_t high) {
  constexpr int32_t kInfinity = 0x7F800000;
  int32_t clipped = 0;
  int32_t lifted = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<int32_t>(numbers[i]);
    const int32_t magnitude = bits & INT32_MAX;
    const int32_t is_above =
        static_cast<int32_t>(magnitude > high) & static_cast<int32_t>(magnitude < kInfinity);
    const int32_t is_below = static_cast<int32_t>(magnitude < low) & static_cast<int32_t>(magnitude != 0);
    clipped += is_above;
    lifted += is_below;
    int32_t moved = is_above != 0 ? high : magnitude;
    moved = is_below != 0 ? low : moved;
    numbers[i] = std::bit_cast<float>((bits & INT32_MIN) | moved);
  }
  return {clipped, lifted};
}

}  // namespace

ClipCounts clip_magnitudes(float* numbers, int64_t count, float min, float max) {
  ClipCounts total;
  for (int64_t start = 0; start < count; start += kChunk) {
    const ClipCounts counts = clip_chunk(numbers + start, std::min(kChunk, count - start),
                                         std::bit_cast<int32_t>(min), std::bit_cast<int32_t>(max));
    total.clipped += counts.clipped;
    total.lifted += counts.lifted;
  }
  return total;
}

}  // namespace tilework
