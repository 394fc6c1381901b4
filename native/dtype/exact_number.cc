#include "dtype/exact_number.h"

#include <algorithm>
#include <bit>

namespace tilework {
namespace {

using Kind = ExactNumber::Kind;

constexpr uint64_t bit(int position) { return uint64_t{1} << position; }
constexpr uint64_t low_bits(uint64_t value, int count) {
  return count >= 64 ? value : value & (bit(count) - 1);
}

// Some standard libraries return an unsigned number from std::bit_width.
int width_of(uint64_t value) { return static_cast<int>(std::bit_width(value)); }

enum class Rounding { kNearestEven, kTowardZero };

// value / 2^shift, rounded to an integer; for a negative shift the low 64 bits of the product.
uint64_t shifted(uint64_t value, int64_t shift, Rounding rounding) {
  if (shift <= 0) return shift > -64 ? value << -shift : 0;
  if (shift > 64) return 0;
  const uint64_t whole = shift == 64 ? 0 : value >> shift;
  if (rounding == Rounding::kTowardZero) return whole;
  const uint64_t remainder = low_bits(value, static_cast<int>(shift));
  const uint64_t half = bit(static_cast<int>(shift) - 1);
  return remainder > half || (remainder == half && whole % 2 == 1) ? whole + 1 : whole;
}

ExactNumber decode_float(const DtypeInfo& type, uint64_t code) {
  ExactNumber number;
  if (type.specials == Specials::kScale) {
    if (code == 0xff) return {Kind::kNaN};
    return {Kind::kFinite, false, 1, static_cast<int>(code) - type.bias};
  }
  const int m = type.mantissa_bits;
  const uint64_t sign = bit(type.bits - 1);
  const uint64_t magnitude = code & (sign - 1);
  number.is_negative = (code & sign) != 0;
  // Its sign bit is set, so it counts as negative, as in ml_dtypes.
  if (type.specials == Specials::kFnuz && code == sign) return {Kind::kNaN, true};
  const uint64_t mantissa = low_bits(magnitude, m);
  const uint64_t exponent = magnitude >> m;
  if (type.specials == Specials::kFn && magnitude == sign - 1) return {Kind::kNaN, number.is_negative};
  if (type.specials == Specials::kIeee && exponent == (sign >> m) - 1) {
    number.kind = mantissa == 0 ? Kind::kInfinity : Kind::kNaN;
    number.significand = mantissa << (64 - m);
    return number;
  }
  number.significand = exponent == 0 ? mantissa : mantissa + bit(m);
  number.exponent = static_cast<int>(std::max<uint64_t>(exponent, 1)) - type.bias - m;
  return number;
}

// float16, float32 and float64 keep the upper bits of a payload, and narrower floats have no room for one.
// bfloat16 always has the same NaN in ONNX and ml_dtypes.
uint64_t encode_nan(const DtypeInfo& type, const ExactNumber& number) {
  const uint64_t sign = bit(type.bits - 1);
  const uint64_t signed_code = number.is_negative ? sign : 0;
  switch (type.specials) {
    case Specials::kFn:
      return signed_code | (sign - 1);
    case Specials::kFnuz:
      return sign;
    case Specials::kScale:
      return 0xff;
    default:
      break;
  }
  const int m = type.mantissa_bits;
  const uint64_t quiet = sign - bit(m - 1);
  const bool has_payload = type.mantissa_bits >= 10;
  return signed_code | quiet | (has_payload ? number.significand >> (64 - m) : 0);
}

uint64_t largest_finite(const DtypeInfo& type) {
  const uint64_t all_ones = bit(type.bits - 1) - 1;
  if (type.specials == Specials::kIeee) return all_ones - bit(type.mantissa_bits);
  return type.specials == Specials::kFn ? all_ones - 1 : all_ones;
}

// Code of a magnitude as if the exponent were unbounded. Codes grow with values, so a carry of the rounding
// is correct. One past the largest finite code means overflow in every type that has it.
uint64_t round_magnitude(const DtypeInfo& type, const ExactNumber& number, uint64_t overflow) {
  if (number.kind == Kind::kInfinity) return overflow;
  if (number.significand == 0) return 0;
  const int64_t min_exponent = 1 - type.bias;
  const int64_t own = number.exponent + width_of(number.significand) - 1;
  const int64_t exponent = std::max(own, min_exponent);
  if (exponent - min_exponent > static_cast<int64_t>(overflow >> type.mantissa_bits)) return overflow;
  const int64_t shift = exponent - type.mantissa_bits - number.exponent;
  const uint64_t steps = shifted(number.significand, shift, Rounding::kNearestEven);
  return std::min((static_cast<uint64_t>(exponent - min_exponent) << type.mantissa_bits) + steps, overflow);
}

uint64_t encode_float(const DtypeInfo& type, const ExactNumber& number, const CastOptions& options) {
  if (number.kind == Kind::kNaN) return encode_nan(type, number);
  const uint64_t sign = bit(type.bits - 1);
  const uint64_t limit = largest_finite(type);
  uint64_t magnitude = round_magnitude(type, number, limit + 1);
  if (magnitude > limit && options.saturate && type.bits == 8) magnitude = limit;
  // The code `sign` is NaN; there is no -0.
  if (type.specials == Specials::kFnuz && (magnitude == 0 || magnitude == sign)) return magnitude;
  return number.is_negative ? magnitude | sign : magnitude;
}

// float4 and float6.
uint64_t encode_finite(const DtypeInfo& type, const ExactNumber& number, const CastOptions& options) {
  const uint64_t limit = largest_finite(type);
  const uint64_t sign = limit + 1;
  if (number.kind == Kind::kNaN) {
    if (options.mode == CastMode::kSpec) return type.bits == 4 ? limit : sign;
    return number.is_negative ? 0 : sign;
  }
  const uint64_t magnitude = std::min(round_magnitude(type, number, sign), limit);
  return number.is_negative ? magnitude | sign : magnitude;
}

bool rounds_up(const ExactNumber& number, ScaleRounding round) {
  const int top = width_of(number.significand) - 1;
  switch (round) {
    case ScaleRounding::kUp:
      return number.significand != bit(top);
    case ScaleRounding::kNearest:
      return top > 0 && (number.significand & bit(top - 1)) != 0;
    case ScaleRounding::kDown:
      return false;
  }
  return false;
}

uint64_t encode_scale(const ExactNumber& number, const CastOptions& options) {
  constexpr int64_t kNaN = 0xff;
  constexpr int64_t kLargest = 0xfe;
  const bool is_zero = number.kind == Kind::kFinite && number.significand == 0;
  if (is_zero) return options.saturate ? 0 : kNaN;
  if (number.kind == Kind::kNaN || number.is_negative) return kNaN;
  if (number.kind == Kind::kInfinity) return options.saturate ? kLargest : kNaN;
  const int64_t floor = number.exponent + width_of(number.significand) - 1;
  const int64_t code = floor + 127 + (rounds_up(number, options.round) ? 1 : 0);
  if (code > kLargest) return options.saturate ? kLargest : kNaN;
  return static_cast<uint64_t>(std::max<int64_t>(code, 0));
}

// Follows onnx.reference, which works on the bits of a float32: it drops the sign, maps infinity to NaN, and
// treats the mantissa of a subnormal like any other.
uint64_t encode_scale_of_onnx(const ExactNumber& number, const CastOptions& options) {
  constexpr uint64_t kHalf = 0x400000;
  const uint64_t bits = encode(info_of(Dtype::kFloat32), number, options) & 0x7fffffff;
  const uint64_t exponent = bits >> 23;
  const uint64_t mantissa = low_bits(bits, 23);
  if (exponent == 0xff) return 0xff;
  bool up = options.round == ScaleRounding::kUp && mantissa != 0;
  if (options.round == ScaleRounding::kNearest) up = mantissa > kHalf || (mantissa == kHalf && exponent > 0);
  if (exponent == 0xfe && options.saturate) up = false;
  return exponent + (up ? 1 : 0);
}

uint64_t encode_integer(const DtypeInfo& type, const ExactNumber& number, const CastOptions& options) {
  // For 2- and 4-bit types, infinities and NaN have no low bits: they give 0.
  const bool keeps_low_bits = number.is_integer || type.bits < 8;
  if (number.kind == Kind::kNaN) return 0;
  if (keeps_low_bits) {
    if (number.kind == Kind::kInfinity) return 0;
    const bool is_even = type.bits < 8 && options.mode == CastMode::kSpec;
    const Rounding rounding = is_even ? Rounding::kNearestEven : Rounding::kTowardZero;
    const uint64_t magnitude = shifted(number.significand, -int64_t{number.exponent}, rounding);
    return low_bits(number.is_negative ? 0 - magnitude : magnitude, type.bits);
  }
  const bool is_signed = type.kind == DtypeKind::kInt;
  const uint64_t limit = is_signed            ? bit(type.bits - 1) - (number.is_negative ? 0 : 1)
                         : number.is_negative ? 0
                                              : low_bits(~uint64_t{0}, type.bits);
  const bool is_huge = number.kind == Kind::kInfinity ||
                       (number.significand != 0 && number.exponent + width_of(number.significand) > 64);
  const uint64_t magnitude =
      is_huge
          ? limit
          : std::min(limit, shifted(number.significand, -int64_t{number.exponent}, Rounding::kTowardZero));
  return low_bits(number.is_negative ? 0 - magnitude : magnitude, type.bits);
}

// Types of ml_dtypes, which converts every source through float32.
bool goes_through_float32(const DtypeInfo& type) {
  return type.kind == DtypeKind::kFloat && type.bits <= 16 && type.dtype != Dtype::kFloat16;
}

}  // namespace

ExactNumber decode(const DtypeInfo& type, uint64_t code) {
  if (type.kind == DtypeKind::kFloat) return decode_float(type, code);
  if (type.kind == DtypeKind::kBool) return {Kind::kFinite, false, code != 0 ? uint64_t{1} : 0, 0, true};
  const bool is_negative = type.kind == DtypeKind::kInt && (code & bit(type.bits - 1)) != 0;
  return {Kind::kFinite, is_negative, low_bits(is_negative ? 0 - code : code, type.bits), 0, true};
}

uint64_t encode(const DtypeInfo& type, ExactNumber number, const CastOptions& options) {
  if (options.mode == CastMode::kOnnx && goes_through_float32(type)) {
    const DtypeInfo& float32 = info_of(Dtype::kFloat32);
    number = decode(float32, encode_float(float32, number, options));
  }
  if (type.kind == DtypeKind::kBool) {
    return number.kind != Kind::kFinite || number.significand != 0 ? 1 : 0;
  }
  if (type.kind != DtypeKind::kFloat) return encode_integer(type, number, options);
  switch (type.specials) {
    case Specials::kScale:
      return options.mode == CastMode::kOnnx ? encode_scale_of_onnx(number, options)
                                             : encode_scale(number, options);
    case Specials::kFinite:
      return encode_finite(type, number, options);
    default:
      return encode_float(type, number, options);
  }
}

}  // namespace tilework
