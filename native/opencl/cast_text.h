// Casts between element types as OpenCL C, in integer arithmetic only: what a device's floating point does,
// and whether it has halves and doubles, has no part in it. The rules are those of dtype/exact_number.cc, so
// every code comes out as on the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dtype/cast.h"

namespace tilework::cl {

// Text that defines `ulong convert(ulong code)`, the casts one after the other. Codes stand in the low bits.
// Errors: ERR_UNSUPPORTED for complex types.
std::string cast_text(std::span<const Cast> casts);

// The same for any casts: `ulong convert(ulong code, __global const long* steps)` reads them from a table.
std::string table_cast_text();

// Appends the table for it. Errors: as cast_text.
void add_casts(std::vector<int64_t>& table, std::span<const Cast> casts);

}  // namespace tilework::cl
