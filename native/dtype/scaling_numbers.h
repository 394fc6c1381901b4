// Scalings as loops that the compiler vectorises. Included by one file per instruction set. Everything has
// internal linkage: the linker must not replace a template instance by one compiled for another CPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "dtype/scaling.h"

namespace tilework {
namespace {

template <Dtype dtype>
struct ScaledNumber;
#define TILEWORK_SCALED_NUMBER(dtype, type) \
  template <>                               \
  struct ScaledNumber<Dtype::dtype> {       \
    using Type = type;                      \
  };
TILEWORK_SCALED_NUMBER(kInt8, int8_t)
TILEWORK_SCALED_NUMBER(kUint8, uint8_t)
TILEWORK_SCALED_NUMBER(kInt32, int32_t)
TILEWORK_SCALED_NUMBER(kFloat32, float)
TILEWORK_SCALED_NUMBER(kFloat64, double)
#undef TILEWORK_SCALED_NUMBER

// Rounds a small number to the nearest integer, ties to even. Adding 1.5 * 2^(mantissa bits) moves the units
// digit to the last mantissa bit, so no rounding instruction is needed.
template <class Number>
Number nearest_even(Number value) {
  constexpr Number kOnes = std::is_same_v<Number, float> ? Number{12582912} : Number{6755399441055744};
  return (value + kOnes) - kOnes;
}

template <class Number>
Number away_from_zero(Number value) {
  using Whole = std::conditional_t<std::is_same_v<Number, float>, int32_t, int64_t>;
  const Number whole = static_cast<Number>(static_cast<Whole>(value));
  const Number fraction = value - whole;
  return whole + (fraction >= Number(0.5) ? Number{1} : Number{0}) -
         (fraction <= Number(-0.5) ? Number{1} : Number{0});
}

template <class Number>
Number clamped(Number value, Number low, Number high) {
  value = value < low ? low : value;
  return value > high ? high : value;
}

// Clamping before rounding gives the same result, since the limits are integers, and keeps the numbers small.
template <QuantizeRules rules, class Number>
Number whole_code(Number quotient, Number offset, Number low, Number high) {
  // NaN does not compare equal to itself.
  const Number value = quotient == quotient ? quotient : Number{0};
  if constexpr (rules == QuantizeRules::kTmfile) {
    return away_from_zero(clamped(value + offset, low, high));
  } else {
    return nearest_even(clamped(value, low - offset, high - offset)) + offset;
  }
}

template <ScalingKind kind, QuantizeRules rules, class Out, class Number>
Out scaled(Number value, Number scale, Number offset, Number low, Number high) {
  if constexpr (kind == ScalingKind::kDequantize) {
    return (value - offset) * scale;
  } else if constexpr (kind == ScalingKind::kAffine) {
    return std::fma(value, scale, offset);
  } else if constexpr (std::is_integral_v<Out>) {
    const Number code = whole_code<rules>(value / scale, offset, low, high);
    using Wide = std::conditional_t<std::is_same_v<Number, float>, int32_t, int64_t>;
    return static_cast<Out>(static_cast<Wide>(code));
  } else {
    return value / scale;
  }
}

// Elements may be unaligned, so memcpy moves them; it compiles to a plain load or store.
template <ScalingKind kind, QuantizeRules rules, bool each, class In, class Out>
void scale_numbers(const ScalingArguments& arguments) {
  using Number = std::conditional_t<std::is_same_v<In, double>, double, float>;
  // __restrict tells the compiler that the stores alias neither the source nor the count.
  const uint8_t* __restrict source = arguments.source;
  uint8_t* __restrict destination = arguments.destination;
  const auto* __restrict scales = static_cast<const Number*>(arguments.scales);
  const auto* __restrict offsets = static_cast<const Number*>(arguments.offsets);
  const auto low = static_cast<Number>(arguments.low);
  const auto high = static_cast<Number>(arguments.high);
  const int64_t count = arguments.count;
  const Number scale = scales[0];
  const Number offset = offsets[0];
  for (int64_t i = 0; i < count; ++i) {
    In value;
    std::memcpy(&value, source + i * static_cast<int64_t>(sizeof(In)), sizeof(In));
    const Out result = scaled<kind, rules, Out>(static_cast<Number>(value), each ? scales[i] : scale,
                                                each ? offsets[i] : offset, low, high);
    std::memcpy(destination + i * static_cast<int64_t>(sizeof(Out)), &result, sizeof(Out));
  }
}

template <ScalingKind kind, QuantizeRules rules, class In, class Out>
void scale_all(const ScalingArguments& arguments) {
  if (arguments.stride == 0) {
    scale_numbers<kind, rules, false, In, Out>(arguments);
  } else {
    scale_numbers<kind, rules, true, In, Out>(arguments);
  }
}

template <ScalingKind kind, Dtype from, Dtype to>
void scale_by_loops(const ScalingArguments& arguments) {
  using In = typename ScaledNumber<from>::Type;
  using Out = typename ScaledNumber<to>::Type;
  constexpr bool kRounds = kind == ScalingKind::kQuantize && std::is_integral_v<Out>;
  if (kRounds && arguments.rules == QuantizeRules::kTmfile) {
    scale_all<kind, QuantizeRules::kTmfile, In, Out>(arguments);
  } else {
    scale_all<kind, QuantizeRules::kOnnx, In, Out>(arguments);
  }
}

}  // namespace
}  // namespace tilework
