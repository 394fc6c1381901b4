// Joins two layouts of the same shape into loop nests that write the destination in memory order.
//
// Both sides split each index into digits. Refining the digits of each side by the other gives loops with
// fixed strides in source and destination. Where digits do not divide each other (odd extents under fused
// axes, padding that is not a multiple of a block) the source offset comes from a lookup: a table over the
// common period of both sides, or arithmetic where the period is too long for a table.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "layout/digits.h"
#include "layout/slice.h"

namespace tilework {

// Results of a lookup that are not offsets.
inline constexpr int64_t kHole = INT64_MIN;      // no source element: write zero
inline constexpr int64_t kSkip = INT64_MIN + 1;  // another nest writes this slot

// Source offset by index: a table, or `compute` if the table is empty.
struct Lookup {
  std::vector<int64_t> table;
  std::function<int64_t(int64_t)> compute;

  int64_t at(int64_t index) const {
    return table.empty() ? compute(index) : table[static_cast<size_t>(index)];
  }
};

// An index that several loops share: the sum of loop counter times weight over these loops.
struct Variable {
  // Destination slots that this nest writes.
  int64_t write_lo = 0;
  int64_t write_hi = 0;
  // Slots with a source element; the other slots become zero.
  int64_t valid_lo = 0;
  int64_t valid_hi = 0;
};

inline constexpr int kNone = -1;

// One loop. Strides are in elements.
struct Node {
  int64_t count = 1;
  int64_t source_stride = 0;
  int64_t destination_stride = 0;
  // Variable that bounds this loop; kNone if every iteration is written and has a source.
  int variable = kNone;
  int64_t weight = 1;
  // Lookup that this loop advances by `lookup_stride`, or kNone.
  int lookup = kNone;
  int64_t lookup_stride = 0;
  // Tensor axes of the loop, for explanations.
  std::vector<int> axes;

  // Derived when the nest is complete.
  int64_t below = 0;      // largest sum that deeper loops add to the variable
  int64_t span = 1;       // destination elements spanned by one iteration
  bool looks_up = false;  // innermost loop of its lookup: fixes the source offset
};

struct LoopNest {
  // Outermost first; at least one.
  std::vector<Node> nodes;
  std::vector<Variable> variables;
  std::vector<Lookup> lookups;
  int64_t source_base = 0;
  int64_t destination_base = 0;
  // No slot of this nest has a source.
  bool all_zero = false;
};

// Together the nests write every destination slot. There are several nests only if a side has several pieces;
// then a hole may be zeroed more than once. `from` is bound to the shape of the whole source, and `slice`
// selects from it. Errors: ERR_OVERFLOW.
std::vector<LoopNest> join(const std::vector<int64_t>& shape, const BoundSide& from, const BoundSide& to,
                           const BoundSlice& slice);

}  // namespace tilework
