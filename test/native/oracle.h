// The expected result of a reorder, slot by slot, straight from the definition of a layout. Shares no code
// with the join.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layout/digits.h"
#include "layout/slice.h"

namespace tilework::test {

using Coordinate = std::vector<int64_t>;

// Offset of a logical coordinate. Per-element functions here allocate nothing: with sanitizers that would
// dominate the time of the tests.
inline int64_t offset_of(const std::vector<int64_t>& shape, const Side& side, const Coordinate& logical) {
  for (const Piece& piece : side.pieces) {
    const int64_t at = shape.empty() ? 0 : logical[piece.axis] + side.lower[piece.axis];
    if (at < piece.lo || at >= piece.hi) continue;
    int64_t offset = 0;
    for (const Digit& digit : piece.digits) {
      int64_t index = 0;
      for (int axis : digit.axes) {
        const int64_t padded = shape[axis] + side.lower[axis] + side.upper[axis];
        index = index * padded + logical[axis] + side.lower[axis];
      }
      offset = offset * digit.radix + index / digit.weight % digit.radix;
    }
    return offset;
  }
  return -1;
}

inline constexpr int64_t kNoElement = -1;

// Writes the coordinate of the element at a row-major index to `logical`.
inline void find_coordinate(const std::vector<int64_t>& shape, int64_t element, Coordinate& logical) {
  logical.resize(shape.size());
  for (size_t i = shape.size(); i-- > 0; element /= shape[i]) logical[i] = element % shape[i];
}

// For each slot the row-major index of its element; kNoElement for a hole. Every element is put into its
// slot.
inline std::vector<int64_t> slots_of(const std::vector<int64_t>& shape, const Side& side) {
  std::vector<int64_t> slots(static_cast<size_t>(side.elements), kNoElement);
  int64_t total = 1;
  for (int64_t extent : shape) total *= extent;
  Coordinate logical;
  for (int64_t element = 0; element < total; ++element) {
    find_coordinate(shape, element, logical);
    slots[static_cast<size_t>(offset_of(shape, side, logical))] = element;
  }
  return slots;
}

// Maps a coordinate of the plan to one of the source.
inline void step_into(const std::optional<Slice>& slice, Coordinate& logical) {
  for (size_t i = 0; slice && i < logical.size(); ++i)
    logical[i] = slice->start[i] + slice->step[i] * logical[i];
}

}  // namespace tilework::test
