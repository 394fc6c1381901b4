// Limits of magnitudes, for numbers that are to become a narrower float type.
#pragma once

#include <cstdint>

namespace tilework {

struct ClipCounts {
  // Numbers that were reduced to the largest magnitude, and raised to the smallest.
  int64_t clipped = 0;
  int64_t lifted = 0;
};

// Moves magnitudes of finite numbers other than 0 into [min, max], in place. Infinities, NaN and zeros stay.
ClipCounts clip_magnitudes(float* numbers, int64_t count, float min, float max);

}  // namespace tilework
