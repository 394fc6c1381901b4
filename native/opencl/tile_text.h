// Transposes and interleaves of several loops as OpenCL C. A tile covers the loops that are innermost in the
// source and those that are innermost in the destination, each with enough iterations for runs of a cache
// line on both sides. A work-group reads the tile along the source into local memory and writes it along the
// destination, so that accesses coalesce on both sides.
#pragma once

#include <string>

#include "opencl/device_moves.h"

namespace tilework::cl {

struct KernelText;

// Whether a plan is one nest without lookups, with different innermost loops on both sides, and with a tile
// that fits local memory.
bool can_tile(const DeviceMoves& moves);

// Text of the kernel; its geometry goes to `result`. To follow index_text.
std::string tile_text(const DeviceMoves& moves, KernelText& result);

}  // namespace tilework::cl
