// The work of a device for a plan: its nests, with elements widened as far as possible, and the element
// conversions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dtype/cast_chain.h"
#include "reorder/plan/plan.h"

namespace tilework::cl {

struct DeviceMoves {
  std::vector<LoopNest> nests;
  // Bits of an element as it is moved, which may be several tensor elements. Source and destination bits are
  // equal without steps.
  int source_bits = 0;
  int destination_bits = 0;
  int64_t source_elements = 0;
  int64_t destination_elements = 0;
  // Steps of the plan.
  std::span<const ElementStep> steps;
};

// The moves of a plan, which must outlive them. Ranges and windows end at multiples of `multiple` bytes or at
// the end of the storage; this limits how far elements can be widened.
DeviceMoves moves_of(const ReorderPlan& plan, int64_t multiple);

}  // namespace tilework::cl
