// Scalings (dtype/scaling.h) as OpenCL C. Devices may divide with an error, may flush small numbers to zero,
// and may have no float64; so products, sums and quotients are made of integers here, with all of their bits
// or a last one that says that there are more, and rounded once, as the CPU does it: every code is the CPU's.
#pragma once

#include <string>

namespace tilework::cl {

// Text that defines `ulong scaled(int kind, Type from, Type to, ulong code, ulong scale, ulong offset, long
// low, long high, int tmfile)` behind exact_numbers_text(). Kinds are numbered as in ScalingKind; scale and
// offset are codes of the type in which the scaling computes.
std::string scaling_text();

}  // namespace tilework::cl
