// Joins two layouts of the same shape into loop nests that write the destination in memory order.
//
// Both sides split each index into digits. Refining the digits of both by each other gives loops that step
// through source and destination with fixed strides. Where the digits do not divide each other (odd extents
// under fused axes, paddings that are no multiple of a block) the source offset comes from a lookup: a small
// table over the period after which both sides repeat, or arithmetic where that period is too long for a
// table.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "layout/digits.h"
#include "layout/slice.h"

namespace tilework {

// Entries of a lookup table: 8192 of 8 bytes are 64 KiB, which stays in the second-level cache beside the
// data.
inline constexpr int64_t kMaxTableEntries = 8192;

// Answers of a lookup that are no offsets.
inline constexpr int64_t kHole = INT64_MIN;      // nothing of the source belongs here: write zero
inline constexpr int64_t kSkip = INT64_MIN + 1;  // another nest writes this slot

// Source offset by index; a table, or `compute` where the table is empty.
struct Lookup {
  std::vector<int64_t> table;
  std::function<int64_t(int64_t)> compute;

  int64_t at(int64_t index) const {
    return table.empty() ? compute(index) : table[static_cast<size_t>(index)];
  }
};

// An index that several loops share: the sum of loop counter times weight.
struct Variable {
  // Slots of the destination that this nest writes.
  int64_t write_lo = 0;
  int64_t write_hi = 0;
  // Slots that hold an element of the source; the rest is zero.
  int64_t valid_lo = 0;
  int64_t valid_hi = 0;
};

inline constexpr int kNone = -1;

// One loop. Strides are in elements.
struct Node {
  int64_t count = 1;
  int64_t source_stride = 0;
  int64_t destination_stride = 0;
  // Variable that bounds this loop, or kNone: then every pass is written and has a source.
  int variable = kNone;
  int64_t weight = 1;
  // Lookup that this loop steps through with `lookup_stride`, or kNone.
  int lookup = kNone;
  int64_t lookup_stride = 0;
  // Axes of the tensor that the loop runs over, for explanations.
  std::vector<int> axes;

  // Filled when the nest is complete.
  int64_t below = 0;      // most that the deeper loops add to the variable
  int64_t span = 1;       // destination elements from the first to the last of one pass
  bool dense = true;      // one pass writes all `span` elements
  bool looks_up = false;  // last loop of its lookup: the source offset is known here
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

// Together the nests write every slot of the destination. There are several only where a side has several
// pieces; a hole may then be zeroed by more than one of them. `from` is bound to the shape of the whole
// source, of which `slice` is taken. Errors: ERR_OVERFLOW.
std::vector<LoopNest> join(const std::vector<int64_t>& shape, const BoundSide& from, const BoundSide& to,
                           const BoundSlice& slice);

}  // namespace tilework
