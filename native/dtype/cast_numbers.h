// Casts between types that C++ has natively, as loops that the compiler vectorises. Included by one file per
// instruction set. Everything has internal linkage: the linker must not replace a template instance by one
// compiled for another CPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "dtype/cast_blocks.h"

namespace tilework {
namespace {

template <Dtype dtype>
struct NumberOf;
// A stored bool is a byte; every value but 0 is true.
struct BoolByte {
  uint8_t byte;
};
#define TILEWORK_NUMBER(dtype, type) \
  template <>                        \
  struct NumberOf<Dtype::dtype> {    \
    using Type = type;               \
  };
TILEWORK_NUMBER(kInt8, int8_t)
TILEWORK_NUMBER(kInt16, int16_t)
TILEWORK_NUMBER(kInt32, int32_t)
TILEWORK_NUMBER(kInt64, int64_t)
TILEWORK_NUMBER(kUint8, uint8_t)
TILEWORK_NUMBER(kUint16, uint16_t)
TILEWORK_NUMBER(kUint32, uint32_t)
TILEWORK_NUMBER(kUint64, uint64_t)
TILEWORK_NUMBER(kFloat32, float)
TILEWORK_NUMBER(kFloat64, double)
TILEWORK_NUMBER(kBool, BoolByte)
#undef TILEWORK_NUMBER

template <class To, class From>
To clamped(From value) {
  using Limits = std::numeric_limits<To>;
  // Both bounds are powers of two or zero and exact as floats; the largest integer is not.
  constexpr From kLeast = static_cast<From>(Limits::min());
  constexpr From kBeyond = static_cast<From>(Limits::max() / 2 + 1) * 2;
  if (!(value > kLeast)) return value != value ? To{0} : Limits::min();
  return value >= kBeyond ? Limits::max() : static_cast<To>(value);
}

// Rounds to odd: the last mantissa bit of the result is set if the value was inexact. A finite value never
// becomes an infinity. Branch-free, so that the compiler can vectorise it.
inline float odd_float32(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  // Truncates toward zero, then sets the last bit if anything was lost.
  bits -= std::fabs(back) > std::fabs(value) ? 1 : 0;
  bits |= back < value || back > value ? 1 : 0;
  return std::bit_cast<float>(bits);
}

template <class From>
float odd_float32_of_integer(From value) {
  using Unsigned = std::make_unsigned_t<From>;
  const bool is_negative = value < 0;
  Unsigned magnitude =
      is_negative ? Unsigned{0} - static_cast<Unsigned>(value) : static_cast<Unsigned>(value);
  const int excess = static_cast<int>(std::bit_width(magnitude)) - std::numeric_limits<float>::digits;
  if (excess > 0) {
    const Unsigned lost = magnitude & ((Unsigned{1} << excess) - 1);
    magnitude = magnitude - lost + (lost != 0 ? Unsigned{1} << excess : 0) * ((~magnitude >> excess) & 1);
  }
  const float result = static_cast<float>(magnitude);
  return is_negative ? -result : result;
}

template <CastRounding rounding, class To, class From>
To number_cast(From value) {
  if constexpr (std::is_same_v<From, BoolByte>) {
    return static_cast<To>(value.byte != 0 ? 1 : 0);
  } else if constexpr (std::is_same_v<To, BoolByte>) {
    return {static_cast<uint8_t>(value != From{0} ? 1 : 0)};
  } else if constexpr (rounding == CastRounding::kOdd) {
    if constexpr (std::is_integral_v<From>) {
      return odd_float32_of_integer(value);
    } else {
      return odd_float32(value);
    }
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return clamped<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// Elements may be unaligned, so memcpy moves them; it compiles to a plain load or store.
template <CastRounding rounding, class From, class To>
void cast_number(const uint8_t* source, uint8_t* destination, int64_t i) {
  From value;
  std::memcpy(&value, source + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
  const To cast = number_cast<rounding, To>(value);
  std::memcpy(destination + i * static_cast<int64_t>(sizeof(To)), &cast, sizeof(To));
}

// Types with the same bits of every result, so that pairs that differ by a sign alone share their loops:
// integers are cut off, or filled up with the sign of the source.
template <Dtype from, Dtype to>
struct SharedTypes {
  using From = typename NumberOf<from>::Type;
  using To = typename NumberOf<to>::Type;
  static constexpr bool kIsInteger = std::is_integral_v<From> && std::is_integral_v<To>;
  static constexpr bool kIsTest = std::is_integral_v<From> && std::is_same_v<To, BoolByte>;
  static constexpr bool kIsCut = kIsTest || (kIsInteger && sizeof(To) <= sizeof(From));
  template <bool is_unsigned, class Number>
  using Unsigned =
      typename std::conditional_t<is_unsigned, std::make_unsigned<Number>, std::type_identity<Number>>::type;
  using Source = Unsigned<kIsCut, From>;
  using Destination = Unsigned<kIsInteger, To>;
};

template <CastRounding rounding, class From, class To>
struct NumberLoops {
  static constexpr int64_t kGroup = 64;
  static constexpr int64_t kSourceBytes = kGroup * int64_t{sizeof(From)};
  static constexpr int64_t kDestinationBytes = kGroup * int64_t{sizeof(To)};

  static void run(const uint8_t* from, uint8_t* to, int64_t count, const CastOptions&) {
    // __restrict tells the compiler that the stores alias neither the source nor the count.
    const uint8_t* __restrict source = from;
    uint8_t* __restrict destination = to;
    for (int64_t i = 0; i < count; ++i) cast_number<rounding, From, To>(source, destination, i);
  }

  static void stream(const uint8_t* source, uint8_t* destination, int64_t count, const CastOptions&) {
    alignas(kCastLine) uint8_t lines[kDestinationBytes];
    for (; count > 0; count -= kGroup) {
      for (int64_t i = 0; i < kGroup; ++i) cast_number<rounding, From, To>(source, lines, i);
      stream_lines<kDestinationBytes, kDestinationBytes>(destination, lines);
      source += kSourceBytes;
      destination += kDestinationBytes;
    }
  }

  static constexpr CastLoop kLoop{run, 1, stream, kGroup, 8 * sizeof(From), 8 * sizeof(To)};
};

template <CastRounding rounding, Dtype from, Dtype to>
void cast_numbers(const CastArguments& arguments) {
  using Types = SharedTypes<from, to>;
  run_loop(arguments, NumberLoops<rounding, typename Types::Source, typename Types::Destination>::kLoop);
}

}  // namespace
}  // namespace tilework
