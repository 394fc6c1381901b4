// Casts between element types as OpenCL C, in integer arithmetic only: what a device's floating point does,
// and whether it has halves and doubles, has no part in it. The rules are those of dtype/exact_number.cc, so
// every code comes out as on the CPU.
#pragma once

#include <span>
#include <string>

#include "dtype/cast.h"

namespace tilework::cl {

// Text that defines `ulong convert(ulong code)`, the casts one after the other. Codes stand in the low bits.
// Errors: ERR_UNSUPPORTED for complex types.
std::string cast_text(std::span<const Cast> casts);

}  // namespace tilework::cl
