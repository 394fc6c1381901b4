// Scalings (dtype/scaling.h) as OpenCL C. Devices may divide inexactly, flush subnormals to zero, or lack
// float64. So products, sums and quotients are computed in integers, exactly or with a sticky last bit, and
// rounded once: every code equals the CPU's.
#pragma once

#include <string>

namespace tilework::cl {

// Text that defines `ulong scaled(int kind, Type from, Type to, ulong code, ulong scale, ulong offset, long
// low, long high, int tmfile)`, to follow exact_numbers_text(). Kinds are numbered as in ScalingKind; scale
// and offset are codes of the type in which the scaling computes.
std::string scaling_text();

}  // namespace tilework::cl
