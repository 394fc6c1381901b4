// What a reorder must do, slot by slot and straight from the definition of a layout. Shares nothing with the
// join.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layout/digits.h"
#include "layout/slice.h"

namespace tilework::test {

using Coordinate = std::vector<int64_t>;

inline std::vector<int64_t> padded_extents(const std::vector<int64_t>& shape, const Side& side) {
  std::vector<int64_t> padded = shape;
  for (size_t i = 0; i < shape.size(); ++i) padded[i] += side.lower[i] + side.upper[i];
  return padded;
}

// Offset of a logical coordinate.
inline int64_t offset_of(const std::vector<int64_t>& shape, const Side& side, const Coordinate& logical) {
  const std::vector<int64_t> padded = padded_extents(shape, side);
  for (const Piece& piece : side.pieces) {
    const int64_t at = shape.empty() ? 0 : logical[piece.axis] + side.lower[piece.axis];
    if (at < piece.lo || at >= piece.hi) continue;
    int64_t offset = 0;
    for (const Digit& digit : piece.digits) {
      int64_t index = 0;
      for (int axis : digit.axes) index = index * padded[axis] + logical[axis] + side.lower[axis];
      offset = offset * digit.radix + index / digit.weight % digit.radix;
    }
    return offset;
  }
  return -1;
}

// For each slot its logical coordinate, or none for a hole: every coordinate is put where it belongs.
inline std::vector<std::optional<Coordinate>> slots_of(const std::vector<int64_t>& shape, const Side& side) {
  std::vector<std::optional<Coordinate>> slots(static_cast<size_t>(side.elements));
  int64_t total = 1;
  for (int64_t extent : shape) total *= extent;
  for (int64_t flat = 0; flat < total; ++flat) {
    Coordinate logical(shape.size());
    int64_t rest = flat;
    for (size_t i = shape.size(); i-- > 0; rest /= shape[i]) logical[i] = rest % shape[i];
    slots[static_cast<size_t>(offset_of(shape, side, logical))] = logical;
  }
  return slots;
}

// The source's coordinate of one of the plan's.
inline Coordinate sliced(const Coordinate& logical, const std::optional<Slice>& slice) {
  Coordinate source = logical;
  for (size_t i = 0; slice && i < source.size(); ++i)
    source[i] = slice->start[i] + slice->step[i] * logical[i];
  return source;
}

}  // namespace tilework::test
