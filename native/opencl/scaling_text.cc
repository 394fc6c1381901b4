#include "opencl/scaling_text.h"

namespace tilework::cl {
namespace {

// Input significands have at most 53 bits. Result significands have at least 55 bits, the last one sticky,
// which is enough to round to 53 bits, ties included.
constexpr const char* kScaling = R"cl(
#define QUANTIZE 0
#define DEQUANTIZE 1
#define AFFINE 2

int is_zero(Number a) { return a.kind == FINITE && a.significand == 0; }

// Result of an invalid operation: NaN, on x86-64 with its sign set.
Number no_number(void) { return number_of(NOT_A_NUMBER, 1, 0, 0, 0); }

Number one(void) { return number_of(FINITE, 0, 1, 0, 0); }

Number rounded(Type type, Number a) { return decode_float(type, encode_float(type, a, 0)); }

// 128-bit numbers: (high * 2^64 + low) * 2^exponent.
typedef struct {
  ulong high;
  ulong low;
  long exponent;
} Wide;

// Shifts right; lost bits set the last bit (sticky).
Wide shifted_wide(Wide value, long shift) {
  if (shift <= 0) return value;
  value.exponent += shift;
  if (shift >= 128) {
    value.low = (value.high | value.low) != 0;
    value.high = 0;
    return value;
  }
  ulong lost = 0;
  if (shift >= 64) {
    lost = value.low != 0;
    value.low = value.high;
    value.high = 0;
    shift -= 64;
  }
  if (shift > 0) {
    lost |= low_bits(value.low, (int)shift) != 0;
    value.low = value.low >> shift | value.high << (64 - shift);
    value.high >>= shift;
  }
  value.low |= lost;
  return value;
}

// Both arguments are nonzero. The highest set bit of the result is bit 126 or 125.
Wide wide_product(Number a, Number b) {
  const int by_a = (int)clz(a.significand);
  const int by_b = (int)clz(b.significand) - 1;
  const ulong x = a.significand << by_a;
  const ulong y = b.significand << by_b;
  Wide result = {mul_hi(x, y), x * y, a.exponent - by_a + b.exponent - by_b};
  return result;
}

Wide wide_of(Number a) {
  const int by = (int)clz(a.significand) - 1;
  Wide result = {a.significand << by, 0, a.exponent - by - 64};
  return result;
}

Number narrowed(Wide value, int negative) {
  const int empty = (int)(value.high != 0 ? clz(value.high) : 64);
  if (empty == 64) return number_of(FINITE, negative, value.low, value.exponent, 0);
  const ulong high = empty == 0 ? value.high : value.high << empty | value.low >> (64 - empty);
  const ulong low = value.low << empty;
  return number_of(FINITE, negative, high | (low != 0), value.exponent + 64 - empty, 0);
}

// If bits are lost, one argument is so small that the difference cancels at most two bits.
Number wide_sum(Wide a, int a_negative, Wide b, int b_negative) {
  const long exponent = max(a.exponent, b.exponent);
  a = shifted_wide(a, exponent - a.exponent);
  b = shifted_wide(b, exponent - b.exponent);
  if (a_negative == b_negative) {
    Wide sum = {a.high + b.high, a.low + b.low, exponent};
    sum.high += sum.low < a.low;
    return narrowed(sum, a_negative);
  }
  const int is_less = a.high < b.high || (a.high == b.high && a.low < b.low);
  const Wide larger = is_less ? b : a;
  const Wide smaller = is_less ? a : b;
  Wide difference = {larger.high - smaller.high - (larger.low < smaller.low), larger.low - smaller.low, exponent};
  if ((difference.high | difference.low) == 0) return number_of(FINITE, 0, 0, 0, 0);
  return narrowed(difference, is_less ? b_negative : a_negative);
}

// a * b + c
Number fused(Number a, Number b, Number c) {
  const int negative = a.negative != b.negative;
  if (a.kind == NOT_A_NUMBER) return a;
  if (b.kind == NOT_A_NUMBER) return b;
  if (a.kind == INFINITE || b.kind == INFINITE) {
    if (is_zero(a) || is_zero(b)) return no_number();
    if (c.kind == NOT_A_NUMBER) return c;
    if (c.kind == INFINITE && c.negative != negative) return no_number();
    return number_of(INFINITE, negative, 0, 0, 0);
  }
  if (c.kind != FINITE) return c;
  if (is_zero(a) || is_zero(b)) {
    return is_zero(c) ? number_of(FINITE, negative && c.negative, 0, 0, 0) : c;
  }
  const Wide product = wide_product(a, b);
  return is_zero(c) ? narrowed(product, negative) : wide_sum(product, negative, wide_of(c), c.negative);
}

Number product(Number a, Number b) {
  return fused(a, b, number_of(FINITE, a.negative != b.negative, 0, 0, 0));
}

Number sum(Number a, Number b) { return fused(a, one(), b); }

Number difference(Number a, Number b) {
  b.negative = !b.negative;
  return sum(a, b);
}

// Long division with 11 quotient bits per step: three steps for float32, five for float64.
Number quotient(Number a, Number b, int times) {
  const int negative = a.negative != b.negative;
  if (a.kind == NOT_A_NUMBER) return a;
  if (b.kind == NOT_A_NUMBER) return b;
  if (a.kind == INFINITE || is_zero(b)) {
    const int has_none = a.kind == INFINITE ? b.kind == INFINITE : is_zero(a);
    return has_none ? no_number() : number_of(INFINITE, negative, 0, 0, 0);
  }
  if (b.kind == INFINITE || is_zero(a)) return number_of(FINITE, negative, 0, 0, 0);
  const int by_a = (int)clz(a.significand) - 11;
  const int by_b = (int)clz(b.significand) - 11;
  ulong remainder = a.significand << by_a;
  const ulong divisor = b.significand << by_b;
  ulong whole = 0;
  for (int i = 0; i < times; ++i) {
    const ulong digit = (remainder << 11) / divisor;
    remainder = (remainder << 11) - digit * divisor;
    whole = (whole << 11) + digit;
  }
  const long exponent = a.exponent - by_a - b.exponent + by_b - 11 * times;
  return number_of(FINITE, negative, whole | (remainder != 0), exponent, 0);
}

// Rounds to an integer below 2^62.
long whole_of(Number a, int halves_away) {
  const long shift = -a.exponent;
  ulong magnitude = 0;
  if (!halves_away || shift <= 0) {
    magnitude = shifted(a.significand, shift, 1);
  } else if (shift < 64) {
    magnitude = (a.significand + (1ul << (shift - 1))) >> shift;
  }
  return a.negative ? -(long)magnitude : (long)magnitude;
}

long integer_code(Type real, Number ratio, Number offset, long low, long high, int tmfile) {
  const long zero_point = whole_of(offset, 0);
  if (ratio.kind == NOT_A_NUMBER) return zero_point;
  const Number value = tmfile ? rounded(real, sum(ratio, offset)) : ratio;
  const int is_huge = value.kind == INFINITE ||
                      (value.significand != 0 && value.exponent + width_of(value.significand) > 62);
  if (is_huge) return value.negative ? low : high;
  return clamp(whole_of(value, tmfile) + (tmfile ? 0 : zero_point), low, high);
}

ulong scaled(int kind, Type from, Type to, ulong code, ulong scale, ulong offset, long low, long high,
             int tmfile) {
  const int is_double = from.kind == FLOAT && from.bits == 64;
  const Type float64_type = {64, FLOAT, 52, 1023, IEEE};
  const Type real = is_double ? float64_type : float32_type();
  const Number value = decode(from, code);
  const Number factor = decode_float(real, scale);
  const Number term = decode_float(real, offset);
  if (kind == AFFINE) return encode_float(to, fused(value, factor, term), 0);
  if (kind == DEQUANTIZE) {
    return encode_float(to, product(rounded(real, difference(value, term)), factor), 0);
  }
  const Number ratio = rounded(real, quotient(value, factor, is_double ? 5 : 3));
  if (to.kind == FLOAT) return encode_float(to, ratio, 0);
  return low_bits((ulong)integer_code(real, ratio, term, low, high, tmfile), to.bits);
}
)cl";

}  // namespace

std::string scaling_text() { return kScaling; }

}  // namespace tilework::cl
