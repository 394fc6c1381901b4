// Numbers of any element type, exact: the middle of the reference casts. A code is taken apart into a number
// without any rounding, and a number is rounded once, into the code of the other type. Integers only; what
// the processor's floating point does has no part in it.
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
  // Of NaN the payload: the mantissa's bits from the highest bit on.
  uint64_t significand = 0;
  int exponent = 0;
  // Integers that do not fit an integer type keep their low bits; other numbers are clamped.
  bool is_integer = false;
};

// The number of a code of any type but a complex one, in the low bits of `code`.
ExactNumber decode(const DtypeInfo& type, uint64_t code);

// The code nearest to a number. What the options mean is said in dtype/cast.h.
uint64_t encode(const DtypeInfo& type, ExactNumber number, const CastOptions& options);

}  // namespace tilework
