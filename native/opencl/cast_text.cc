#include "opencl/cast_text.h"

#include "error.h"

namespace tilework::cl {
namespace {

// The functions of dtype/exact_number.cc, with the facts of a type as arguments. They are called with
// literals, so the compiler folds what a pair of types does not need.
constexpr const char* kExactNumbers = R"cl(
#define FINITE 0
#define INFINITE 1
#define NOT_A_NUMBER 2

#define IEEE 1
#define FN 2
#define FNUZ 3
#define NO_SPECIALS 4
#define SCALE 5

#define FLOAT 0
#define SIGNED 1
#define UNSIGNED 2
#define BOOLEAN 3

#define ROUND_UP 0
#define ROUND_NEAREST 1
#define ROUND_DOWN 2

typedef struct {
  int bits;
  int kind;
  int mantissa;
  int bias;
  int specials;
} Type;

typedef struct {
  int kind;
  int negative;
  ulong significand;
  long exponent;
  int integer;
} Number;

Number number_of(int kind, int negative, ulong significand, long exponent, int integer) {
  Number number = {kind, negative, significand, exponent, integer};
  return number;
}

ulong low_bits(ulong value, int count) {
  return count >= 64 ? value : value & ((1ul << count) - 1);
}

long width_of(ulong value) { return 64 - (long)clz(value); }

ulong shifted(ulong value, long shift, int to_nearest) {
  if (shift <= 0) return shift > -64 ? value << -shift : 0;
  if (shift > 64) return 0;
  const ulong whole = shift == 64 ? 0 : value >> shift;
  if (!to_nearest) return whole;
  const ulong remainder = low_bits(value, (int)shift);
  const ulong half_step = 1ul << (shift - 1);
  return remainder > half_step || (remainder == half_step && (whole & 1) != 0) ? whole + 1 : whole;
}

Number decode_float(Type type, ulong code) {
  if (type.specials == SCALE) {
    if (code == 0xff) return number_of(NOT_A_NUMBER, 0, 0, 0, 0);
    return number_of(FINITE, 0, 1, (long)code - type.bias, 0);
  }
  const int m = type.mantissa;
  const ulong sign = 1ul << (type.bits - 1);
  const ulong magnitude = code & (sign - 1);
  const int negative = (code & sign) != 0;
  if (type.specials == FNUZ && code == sign) return number_of(NOT_A_NUMBER, 1, 0, 0, 0);
  const ulong mantissa = low_bits(magnitude, m);
  const ulong exponent = magnitude >> m;
  if (type.specials == FN && magnitude == sign - 1) return number_of(NOT_A_NUMBER, negative, 0, 0, 0);
  if (type.specials == IEEE && exponent == (sign >> m) - 1) {
    return number_of(mantissa == 0 ? INFINITE : NOT_A_NUMBER, negative, mantissa << (64 - m), 0, 0);
  }
  const ulong significand = exponent == 0 ? mantissa : mantissa + (1ul << m);
  return number_of(FINITE, negative, significand, (long)max(exponent, 1ul) - type.bias - m, 0);
}

Number decode(Type type, ulong code) {
  if (type.kind == FLOAT) return decode_float(type, code);
  if (type.kind == BOOLEAN) return number_of(FINITE, 0, code != 0 ? 1 : 0, 0, 1);
  const int negative = type.kind == SIGNED && (code & (1ul << (type.bits - 1))) != 0;
  return number_of(FINITE, negative, low_bits(negative ? 0 - code : code, type.bits), 0, 1);
}

ulong largest_finite(Type type) {
  const ulong all_ones = (1ul << (type.bits - 1)) - 1;
  if (type.specials == IEEE) return all_ones - (1ul << type.mantissa);
  return type.specials == FN ? all_ones - 1 : all_ones;
}

ulong encode_nan(Type type, Number number) {
  const ulong sign = 1ul << (type.bits - 1);
  const ulong signed_code = number.negative ? sign : 0;
  if (type.specials == FN) return signed_code | (sign - 1);
  if (type.specials == FNUZ) return sign;
  if (type.specials == SCALE) return 0xff;
  const int m = type.mantissa;
  const ulong quiet = sign - (1ul << (m - 1));
  return signed_code | quiet | (m >= 10 ? number.significand >> (64 - m) : 0);
}

ulong round_magnitude(Type type, Number number, ulong overflow) {
  if (number.kind == INFINITE) return overflow;
  if (number.significand == 0) return 0;
  const long min_exponent = 1 - type.bias;
  const long own = number.exponent + width_of(number.significand) - 1;
  const long exponent = max(own, min_exponent);
  if (exponent - min_exponent > (long)(overflow >> type.mantissa)) return overflow;
  const long shift = exponent - type.mantissa - number.exponent;
  const ulong steps = shifted(number.significand, shift, 1);
  return min(((ulong)(exponent - min_exponent) << type.mantissa) + steps, overflow);
}

ulong encode_float(Type type, Number number, int saturate) {
  if (number.kind == NOT_A_NUMBER) return encode_nan(type, number);
  const ulong sign = 1ul << (type.bits - 1);
  const ulong limit = largest_finite(type);
  ulong magnitude = round_magnitude(type, number, limit + 1);
  if (magnitude > limit && saturate && type.bits == 8) magnitude = limit;
  if (type.specials == FNUZ && (magnitude == 0 || magnitude == sign)) return magnitude;
  return number.negative ? magnitude | sign : magnitude;
}

ulong encode_float4(Type type, Number number, int onnx) {
  const ulong limit = largest_finite(type);
  if (number.kind == NOT_A_NUMBER) {
    if (!onnx) return limit;
    return number.negative ? 0 : 8;
  }
  const ulong magnitude = min(round_magnitude(type, number, limit + 1), limit);
  return number.negative ? magnitude | 8 : magnitude;
}

int rounds_up(Number number, int rounding) {
  const long top = width_of(number.significand) - 1;
  if (rounding == ROUND_UP) return number.significand != 1ul << top;
  return rounding == ROUND_NEAREST && top > 0 && (number.significand & (1ul << (top - 1))) != 0;
}

ulong encode_scale(Number number, int saturate, int rounding) {
  if (number.kind == FINITE && number.significand == 0) return saturate ? 0 : 0xff;
  if (number.kind == NOT_A_NUMBER || number.negative) return 0xff;
  if (number.kind == INFINITE) return saturate ? 0xfe : 0xff;
  const long floor_of = number.exponent + width_of(number.significand) - 1;
  const long code = floor_of + 127 + (rounds_up(number, rounding) ? 1 : 0);
  if (code > 0xfe) return saturate ? 0xfe : 0xff;
  return (ulong)max(code, 0l);
}

Type float32_type() {
  Type type = {32, FLOAT, 23, 127, IEEE};
  return type;
}

ulong encode_scale_of_onnx(Number number, int saturate, int rounding) {
  const ulong half_step = 0x400000;
  const ulong bits = encode_float(float32_type(), number, saturate) & 0x7fffffff;
  const ulong exponent = bits >> 23;
  const ulong mantissa = low_bits(bits, 23);
  if (exponent == 0xff) return 0xff;
  int up = rounding == ROUND_UP && mantissa != 0;
  if (rounding == ROUND_NEAREST) up = mantissa > half_step || (mantissa == half_step && exponent > 0);
  if (exponent == 0xfe && saturate) up = 0;
  return exponent + (up ? 1 : 0);
}

ulong encode_integer(Type type, Number number, int onnx) {
  if (number.kind == NOT_A_NUMBER) return 0;
  if (number.integer || type.bits < 8) {
    if (number.kind == INFINITE) return 0;
    const ulong magnitude = shifted(number.significand, -number.exponent, type.bits < 8 && !onnx);
    return low_bits(number.negative ? 0 - magnitude : magnitude, type.bits);
  }
  const ulong limit = type.kind == SIGNED ? (1ul << (type.bits - 1)) - (number.negative ? 0 : 1)
                     : number.negative   ? 0
                                         : low_bits(~0ul, type.bits);
  const int huge = number.kind == INFINITE ||
                   (number.significand != 0 && number.exponent + width_of(number.significand) > 64);
  const ulong magnitude = huge ? limit : min(limit, shifted(number.significand, -number.exponent, 0));
  return low_bits(number.negative ? 0 - magnitude : magnitude, type.bits);
}

ulong encode(Type type, Number number, int onnx, int saturate, int rounding) {
  if (onnx && type.kind == FLOAT && type.bits <= 16 && !(type.bits == 16 && type.mantissa == 10)) {
    number = decode_float(float32_type(), encode_float(float32_type(), number, saturate));
  }
  if (type.kind == BOOLEAN) return number.kind != FINITE || number.significand != 0 ? 1 : 0;
  if (type.kind != FLOAT) return encode_integer(type, number, onnx);
  if (type.specials == SCALE) {
    return onnx ? encode_scale_of_onnx(number, saturate, rounding)
                : encode_scale(number, saturate, rounding);
  }
  if (type.specials == NO_SPECIALS) return encode_float4(type, number, onnx);
  return encode_float(type, number, saturate);
}
)cl";

// Values of the #defines in the text.
int64_t kind_number(DtypeKind kind) {
  switch (kind) {
    case DtypeKind::kFloat:
      return 0;
    case DtypeKind::kInt:
      return 1;
    case DtypeKind::kUint:
      return 2;
    default:
      return 3;
  }
}

int64_t specials_number(Specials specials) {
  switch (specials) {
    case Specials::kIeee:
      return 1;
    case Specials::kFn:
      return 2;
    case Specials::kFnuz:
      return 3;
    case Specials::kFinite:
      return 4;
    case Specials::kScale:
      return 5;
    default:
      return 0;
  }
}

int64_t rounding_number(ScaleRounding rounding) {
  switch (rounding) {
    case ScaleRounding::kUp:
      return 0;
    case ScaleRounding::kNearest:
      return 1;
    default:
      return 2;
  }
}

}  // namespace

std::string exact_numbers_text() { return kExactNumbers; }

std::string type_text(Dtype dtype) {
  std::string text;
  for (const int64_t number : type_numbers(dtype))
    text += (text.empty() ? "{" : ", ") + std::to_string(number);
  return text + "}";
}

std::array<int64_t, kTypeNumbers> type_numbers(Dtype dtype) {
  const DtypeInfo& type = info_of(dtype);
  return {type.bits, kind_number(type.kind), type.mantissa_bits, type.bias, specials_number(type.specials)};
}

std::array<int64_t, 3> cast_numbers(const Cast& cast) {
  if (is_complex(cast.from()) || is_complex(cast.to())) {
    throw Error(ErrorCode::kUnsupported, "A cast from " + std::string(info_of(cast.from()).name) + " to " +
                                             std::string(info_of(cast.to()).name) +
                                             " is not available on devices; convert on the CPU instead.");
  }
  const CastOptions& options = cast.options();
  return {options.mode == CastMode::kOnnx ? 1 : 0, options.saturate ? 1 : 0, rounding_number(options.round)};
}

}  // namespace tilework::cl
