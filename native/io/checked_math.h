// Checked arithmetic on numbers that come from a file or a caller. A bare * or + on such a number is a reason
// to reject a change.
#pragma once

#include <cstdint>
#include <string>

#include "error.h"

namespace tilework {

// Largest integer that a JavaScript number holds exactly. Larger sizes and offsets cannot be passed to
// JavaScript.
inline constexpr int64_t kMaxSafeInteger = (int64_t{1} << 53) - 1;

[[noreturn]] inline void throw_overflow(const std::string& what) {
  throw Error(ErrorCode::kOverflow, what + " is larger than 2^53 - 1.");
}

// a * b for a, b >= 0; `what` names the product in the message. Errors: ERR_OVERFLOW above 2^53 - 1.
inline int64_t checked_mul(int64_t a, int64_t b, const char* what) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > kMaxSafeInteger) throw_overflow(what);
  return product;
}

// a + b for a, b >= 0. Errors: ERR_OVERFLOW above 2^53 - 1.
inline int64_t checked_add(int64_t a, int64_t b, const char* what) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum) || sum > kMaxSafeInteger) throw_overflow(what);
  return sum;
}

// Quotients rounded toward minus and plus infinity; b > 0.
constexpr int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

}  // namespace tilework
