// Casts between element types as OpenCL C, in integer arithmetic only: what a device's floating point does,
// and whether it has halves and doubles, has no part in it. The rules are those of dtype/exact_number.cc, so
// every code comes out as on the CPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "dtype/cast.h"

namespace tilework::cl {

// Text that defines `Type` and `Number`, `Number decode(Type, ulong code)` and `ulong encode(Type, Number,
// int onnx, int saturate, int rounding)`. Codes stand in the low bits.
std::string exact_numbers_text();

inline constexpr size_t kTypeNumbers = 5;

// The members of a `Type`, and the same as an initializer.
std::array<int64_t, kTypeNumbers> type_numbers(Dtype dtype);
std::string type_text(Dtype dtype);

// What encode() takes behind the number. Errors: ERR_UNSUPPORTED for complex types.
std::array<int64_t, 3> cast_numbers(const Cast& cast);

}  // namespace tilework::cl
