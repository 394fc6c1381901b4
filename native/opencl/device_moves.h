// What a device does of a plan: its nests, as wide as they can be moved, and what becomes of the elements on
// the way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dtype/cast_chain.h"
#include "reorder/plan.h"

namespace tilework::cl {

struct DeviceMoves {
  std::vector<LoopNest> nests;
  // Of an element as it is moved, which may be several of the tensor's. Equal without steps.
  int source_bits = 0;
  int destination_bits = 0;
  int64_t source_elements = 0;
  int64_t destination_elements = 0;
  // Those of the plan.
  std::span<const ElementStep> steps;
};

// The moves of a plan, which has to live as long. `multiple` is a number of bytes of which the ends of ranges
// and windows are multiples, but for the ends of the storage; it limits how wide elements may be.
DeviceMoves moves_of(const ReorderPlan& plan, int64_t multiple);

}  // namespace tilework::cl
