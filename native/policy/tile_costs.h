// What the tilings of a nest cost, so that the cheaper one is taken.
#pragma once

namespace tilework {

struct Tiling;

// Instructions per byte that move a tile in the register blocks that fit it best.
double instructions_per_byte(const Tiling& tiling);

}  // namespace tilework
