// The leaves of each instruction set, best first. The portable ones fit every tile.
#pragma once

#include <span>

#include "engine.h"

namespace tilework {

std::span<const Leaf> portable_leaves();
std::span<const Leaf> avx2_leaves();

}  // namespace tilework
