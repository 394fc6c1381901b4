// A transpose as OpenCL C: a group of work-items reads a tile along the source and writes it along the
// destination, with local memory between, so that neighbours touch neighbouring memory on both sides.
#pragma once

#include <string>

#include "opencl/device_moves.h"

namespace tilework::cl {

struct KernelText;

// Whether a plan is one nest with a loop that is contiguous in the source, and another in the destination,
// both of some length.
bool can_tile(const DeviceMoves& moves);

// The kernel, and its geometry in `result`. Goes behind index_text.
std::string tile_text(const DeviceMoves& moves, KernelText& result);

}  // namespace tilework::cl
