// Casts between element types as OpenCL C, in integer arithmetic only, so that the floating-point behaviour
// of a device does not matter, nor whether it has halves and doubles. The rules are those of
// dtype/exact_number.cc: every code equals the CPU's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "dtype/cast.h"

namespace tilework::cl {

// Text that defines `Type` and `Number`, `Number decode(Type, ulong code)` and `ulong encode(Type, Number,
// int onnx, int saturate, int rounding)`. A code is in the low bits.
std::string exact_numbers_text();

inline constexpr size_t kTypeNumbers = 5;

// Members of a `Type`, in the order of its initializer.
std::array<int64_t, kTypeNumbers> type_numbers(Dtype dtype);
std::string type_text(Dtype dtype);

// Arguments of encode() after the number. Errors: ERR_UNSUPPORTED for complex types.
std::array<int64_t, 3> cast_numbers(const Cast& cast);

}  // namespace tilework::cl
