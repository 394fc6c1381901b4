// A layout bound to a shape, as digit lists (docs: the layouts guide; rules: OpenVINO GPU plugin, tensor_type
// and the index functions of its kernels). An index of each axis is written in mixed radix; memory order is
// the order of the digits. `bind_side` is the only door from an unchecked description to one that the join
// relies on.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "facts/limits.h"

namespace tilework {

// digit = floor(index / weight) mod radix. The index is the padded index of one axis, or the row-major index
// over the padded extents of several axes (fused).
struct Digit {
  std::vector<int> axes;
  int64_t radix = 0;
  int64_t weight = 0;
};

// A digit list, outermost first, that holds for lo <= padded index of `axis` < hi.
struct Piece {
  int axis = 0;
  int64_t lo = 0;
  int64_t hi = 0;
  std::vector<Digit> digits;
};

// One side of a reorder. `elements` is the number of storage slots, holes included.
struct Side {
  std::vector<int64_t> lower;
  std::vector<int64_t> upper;
  std::vector<Piece> pieces;
  int64_t elements = 0;
};

// A digit with its place in memory: `stride` slots between two values.
struct PlacedDigit {
  int64_t weight = 1;
  int64_t radix = 1;
  int64_t stride = 1;

  auto operator<=>(const PlacedDigit&) const = default;
};

// The digits of one axis, or of axes that share an index, in ascending order of weight. The weights form a
// chain: the first is 1 and each is the one before times its radix, so `slots` index values map one to one to
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
  // Every axis is in exactly one of them. Digits of radix 1 are gone.
  std::vector<Dimset> dimsets;
};

struct BoundSide {
  std::vector<int64_t> lower;
  // lower + shape + upper.
  std::vector<int64_t> padded;
  std::vector<BoundPiece> pieces;
  int64_t elements = 0;
};

// Checks a side against the shape. `name` ("from", "to") starts the sentences of errors.
// Errors: ERR_ARGUMENT (wrong lengths, digits that are no one-to-one map into `elements` slots, pieces with
// gaps or with slots of each other), ERR_OVERFLOW (a product above 2^53 - 1).
BoundSide bind_side(const std::vector<int64_t>& shape, const Side& side, const char* name);

}  // namespace tilework
