// Exact numbers of any element type, the intermediate form of the reference cast. Decoding a code loses
// nothing; encoding rounds once. Uses integer arithmetic only, so the floating-point unit has no influence.
#pragma once

#include <cstdint>

#include "dtype/cast.h"
#include "dtype/dtypes.h"

namespace tilework {

// (-1)^is_negative * significand * 2^exponent, an infinity, or NaN.
struct ExactNumber {
  enum class Kind : uint8_t { kFinite, kInfinity, kNaN };
  Kind kind = Kind::kFinite;
  bool is_negative = false;
  // For NaN: the payload, from the highest mantissa bit on.
  uint64_t significand = 0;
  int exponent = 0;
  // Integers that are too large for an integer type keep their low bits; other numbers are clamped.
  bool is_integer = false;
};

// Decodes a code, in the low bits of `code`, of any real type.
ExactNumber decode(const DtypeInfo& type, uint64_t code);

// Encodes a number, rounded to the nearest code. dtype/cast.h explains the options.
uint64_t encode(const DtypeInfo& type, ExactNumber number, const CastOptions& options);

}  // namespace tilework
