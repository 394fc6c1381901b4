// The way of a box through the first-level cache: its source is packed there without gaps, as runs, and a
// plan of its own moves it from there. So kernels for runs and tiles serve nests that have neither: where the
// source is read in steps, and where elements are smaller than a byte.
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
  // Moves packed elements to where `destination` of the box says, or one after the other in that order.
  std::shared_ptr<const ReorderPlan> plan;
};

// Whether a box is read in small steps along another loop than it is written along, so that packed it is made
// of tiles.
bool turns_steps(const LoopNest& nest, const NestBox& box);

enum class StageDestination { kInPlace, kDense };

// Null where lookups scatter the source.
std::shared_ptr<const BoxStage> make_stage(const LoopNest& nest, const NestBox& box, int element_bits,
                                           StageDestination destination);

}  // namespace tilework
