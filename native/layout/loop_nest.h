// Finishes a nest that the join has filled with raw loops: drops what does nothing, merges what steps alike,
// and notes for each loop what the run needs to know.
#pragma once

#include "layout/join.h"

namespace tilework {

// A table of `entries` values of `compute`, or `compute` itself where the table would be too large.
Lookup make_lookup(int64_t entries, std::function<int64_t(int64_t)> compute);

// Writes `elements` zeros.
LoopNest zero_nest(int64_t elements);

// Notes for each loop what the run needs to know, after a change of their order.
void note_facts(LoopNest& nest);

// False when the nest writes no slot at all.
bool finish_nest(LoopNest& nest);

}  // namespace tilework
