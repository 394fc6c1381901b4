// Which bytes of the source a range of the destination is made of, so that they can be fetched before the
// kernel runs: what the programs of the plan would read.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/thresholds.h"
#include "reorder/plan/footprint.h"
#include "reorder/plan/plan.h"

namespace tilework {

// More ranges are merged over wider gaps until they are as few as this: the list stays below 64 KiB and its
// making below a few milliseconds.
inline constexpr size_t kMaxSourceRanges = 4096;

// Ascending, apart by more than `gap` bytes (more where there would be too many). Everything that a run of
// destination bytes [begin, end) reads lies in them; nothing else does but the gaps. `plan.check_range`
// holds.
std::vector<ByteRange> source_ranges(const ReorderPlan& plan, int64_t begin, int64_t end,
                                     int64_t gap = kMergeGapBytes.value);

}  // namespace tilework
