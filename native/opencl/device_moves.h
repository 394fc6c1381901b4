// What a device does of a plan: its nests, as wide as they can be moved, and the casts on the way.
#pragma once

#include <cstdint>
#include <vector>

#include "dtype/cast.h"
#include "reorder/plan.h"

namespace tilework::cl {

struct DeviceMoves {
  std::vector<LoopNest> nests;
  // Of an element as it is moved, which may be several of the tensor's. Equal without casts.
  int source_bits = 0;
  int destination_bits = 0;
  int64_t source_elements = 0;
  int64_t destination_elements = 0;
  std::vector<Cast> casts;
};

// The moves of a plan, which has to live as long. `multiple` is a number of bytes of which the ends of ranges
// and windows are multiples, but for the ends of the storage; it limits how wide elements may be. Errors:
// ERR_UNSUPPORTED for plans that scale elements.
DeviceMoves moves_of(const ReorderPlan& plan, int64_t multiple);

}  // namespace tilework::cl
