// The part of a source that a plan takes: along each axis every step-th index from a start on, also
// backwards.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tilework {

// Logical index of the source = start + step * i, for i from 0 to the extent of the plan's shape.
struct Slice {
  // Logical extents of the whole source, one an axis.
  std::vector<int64_t> shape;
  std::vector<int64_t> start;
  // Not 0; below 0 walks backwards.
  std::vector<int64_t> step;
};

// A slice that stays inside its source. Axes with fewer than two elements have step 1.
struct BoundSlice {
  std::vector<int64_t> start;
  std::vector<int64_t> step;
};

// Checks a slice against the plan's shape; without one, all of the source is taken. Errors: ERR_ARGUMENT
// (wrong lengths, a step of 0), ERR_RANGE (an index that is not inside slice.shape).
BoundSlice bind_slice(const std::vector<int64_t>& shape, const std::optional<Slice>& slice);

}  // namespace tilework
