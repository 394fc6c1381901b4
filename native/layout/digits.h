// A layout bound to a shape, as digit lists (docs/layouts.md; rules: OpenVINO GPU plugin, tensor_type and the
// index functions of its kernels). The index of each axis is written in mixed radix; memory order is the
// order of the digits. `bind_side` turns an unchecked description into a side that the join can rely on.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "facts/limits.h"

namespace tilework {

// digit = floor(index / weight) mod radix. The index is the padded index of one axis, or the row-major index
// over the padded extents of several fused axes.
struct Digit {
  std::vector<int> axes;
  int64_t radix = 0;
  int64_t weight = 0;
};

// A digit list, outermost first, valid for lo <= padded index of `axis` < hi.
struct Piece {
  int axis = 0;
  int64_t lo = 0;
  int64_t hi = 0;
  std::vector<Digit> digits;
};

// Source or destination of a reorder. `elements` counts storage slots, holes included.
struct Side {
  std::vector<int64_t> lower;
  std::vector<int64_t> upper;
  std::vector<Piece> pieces;
  int64_t elements = 0;
};

// A digit with its stride: the distance in slots between two consecutive values.
struct PlacedDigit {
  int64_t weight = 1;
  int64_t radix = 1;
  int64_t stride = 1;

  auto operator<=>(const PlacedDigit&) const = default;
};

// Digits of one axis, or of axes that share an index, in ascending order of weight. The first weight is 1 and
// each following weight is the previous weight times its radix, so `slots` index values map one-to-one to
// memory.
struct Dimset {
  std::vector<int> axes;
  int64_t slots = 1;
  std::vector<PlacedDigit> digits;
};

struct BoundPiece {
  int axis = 0;
  int64_t lo = 0;
  int64_t hi = 0;
  // Each axis is in exactly one dimset. Digits of radix 1 are dropped.
  std::vector<Dimset> dimsets;
};

struct BoundSide {
  std::vector<int64_t> lower;
  // lower + shape + upper.
  std::vector<int64_t> padded;
  std::vector<BoundPiece> pieces;
  int64_t elements = 0;
};

// Checks a side against the shape. `name` ("from" or "to") starts the error messages. Errors: ERR_ARGUMENT
// (wrong lengths; digits that do not map one-to-one into `elements` slots; pieces with gaps or shared slots),
// ERR_OVERFLOW (a product above 2^53 - 1).
BoundSide bind_side(const std::vector<int64_t>& shape, const Side& side, const char* name);

}  // namespace tilework
