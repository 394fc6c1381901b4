// 3 x 3 windows with the byte permutations of AVX-512 (VBMI). One layout keeps the nine taps of a window
// together; the other one has cache lines of one tap each: `o i 9` and `o/16 i/32 9 8i 16o 4i`, say.
#pragma once

#include "reorder/panel.h"

namespace tilework {

// The leaf of units of 1, 2 or 4 bytes, whose extents may be those of windows; without `run` where they are
// not, or the CPU lacks the permutations. It moves panels that turn out to be something else as AVX2 does.
Leaf windows_leaf(const PanelShape& shape);

}  // namespace tilework
