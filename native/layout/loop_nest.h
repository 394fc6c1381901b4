// Finishes the raw nest of a join: drops loops without effect, merges loops with matching steps, and derives
// for each loop what the run needs.
#pragma once

#include "layout/join.h"

namespace tilework {

// A table of `entries` values of `compute`, or `compute` itself if the table would be too large.
Lookup make_lookup(int64_t entries, std::function<int64_t(int64_t)> compute);

// Writes `elements` zeros.
LoopNest zero_nest(int64_t elements);

// Derives the lower fields of each Node; call again after reordering loops.
void note_facts(LoopNest& nest);

// Returns false if the nest writes no slot.
bool finish_nest(LoopNest& nest);

}  // namespace tilework
