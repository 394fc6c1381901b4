// Elements that change their order within a tile, as OpenCL C: transposes, and interleaves of several loops.
// A tile has the loops that are innermost in the source and those that are innermost in the destination, of
// each so many passes that both sides have runs of a cache line. A group of work-items reads it along the
// source and writes it along the destination, with local memory between, so that neighbours touch
// neighbouring memory on both sides.
#pragma once

#include <string>

#include "opencl/device_moves.h"

namespace tilework::cl {

struct KernelText;

// Whether a plan is one nest without lookups, with runs on both sides that do not go the same way, and with a
// tile that fits local memory.
bool can_tile(const DeviceMoves& moves);

// The kernel, and its geometry in `result`. Goes behind index_text.
std::string tile_text(const DeviceMoves& moves, KernelText& result);

}  // namespace tilework::cl
