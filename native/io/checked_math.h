// Arithmetic on numbers that come from outside. A bare * or + on such a number is a review stop: use these.
#pragma once

#include <cstdint>
#include <string>

#include "error.h"

namespace tilework {

// The largest integer that a JavaScript number holds exactly; sizes and offsets above it cannot cross the
// border.
inline constexpr int64_t kMaxSafeInteger = (int64_t{1} << 53) - 1;

[[noreturn]] inline void throw_overflow(const std::string& what) {
  throw Error(ErrorCode::kOverflow, what + " is larger than 2^53 - 1.");
}

// a * b for a, b >= 0. Errors: ERR_OVERFLOW if the product is above 2^53 - 1; `what` starts the sentence.
inline int64_t checked_mul(int64_t a, int64_t b, const char* what) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > kMaxSafeInteger) throw_overflow(what);
  return product;
}

// a + b for a, b >= 0. Errors: ERR_OVERFLOW if the sum is above 2^53 - 1.
inline int64_t checked_add(int64_t a, int64_t b, const char* what) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum) || sum > kMaxSafeInteger) throw_overflow(what);
  return sum;
}

// Quotients that round towards minus and plus infinity; b > 0.
constexpr int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

}  // namespace tilework
