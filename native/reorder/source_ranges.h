// Which bytes of the source a range of the destination is made of, so that they can be fetched before the
// kernel runs. Found from the loops alone: the offsets that full loops reach do not depend on their order, so
// loops whose steps leave small gaps become one range, and only the loops with wider steps are walked.
#pragma once

#include <cstdint>
#include <vector>

#include "reorder/cost_model.h"
#include "reorder/plan.h"

namespace tilework {

struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

// More ranges are merged over wider gaps until they are as few as this: the list stays below 64 KiB and its
// making below a few milliseconds.
inline constexpr size_t kMaxSourceRanges = 4096;

// Ascending, apart by more than `gap` bytes (more where there would be too many). Everything that a run of
// destination bytes [begin, end) reads lies in them; nothing else does but the gaps. `plan.check_range`
// holds.
std::vector<ByteRange> source_ranges(const ReorderPlan& plan, int64_t begin, int64_t end,
                                     int64_t gap = kMergeGapBytes);

}  // namespace tilework
