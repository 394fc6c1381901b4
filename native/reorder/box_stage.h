// The way of a box of 4-bit elements through the first-level cache: its source is unpacked there to bytes
// without gaps, and a plan of bytes moves it from there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reorder/nest_box.h"
#include "reorder/plan.h"

namespace tilework {

// `count` elements that are `step` apart, from `source` on, counted from the box's first element; they go to
// the elements from `packed` on.
struct StageRun {
  int64_t source;
  int64_t packed;
  int64_t count;
  int64_t step;
};

struct BoxStage {
  std::vector<StageRun> runs;
  int64_t packed = 0;
  // Moves packed elements, a byte each, one after the other into the order of the destination.
  std::shared_ptr<const ReorderPlan> plan;
};

// Null where lookups scatter the source.
std::shared_ptr<const BoxStage> make_stage(const LoopNest& nest, const NestBox& box);

}  // namespace tilework
