// The part of a source that a plan reads: every step-th index of each axis from a start, forwards or
// backwards.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tilework {

// Source index = start + step * i, for i from 0 to the extent of the plan's shape.
struct Slice {
  // Logical extents of the whole source, one per axis.
  std::vector<int64_t> shape;
  std::vector<int64_t> start;
  // Not 0; negative steps walk backwards.
  std::vector<int64_t> step;
};

// A slice inside its source. Axes with fewer than two elements have step 1.
struct BoundSlice {
  std::vector<int64_t> start;
  std::vector<int64_t> step;
};

// Checks a slice against the plan's shape; no slice selects the whole source. Errors: ERR_ARGUMENT (wrong
// lengths, a step of 0), ERR_RANGE (an index outside slice.shape).
BoundSlice bind_slice(const std::vector<int64_t>& shape, const std::optional<Slice>& slice);

}  // namespace tilework
