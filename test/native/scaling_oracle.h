// The expected result of a scaling of one element, by the rules of dtype/scaling.h, with the reference casts
// around it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "dtype/scaling.h"

namespace tilework::test {

template <class Number>
Number number_of(Dtype from, uint64_t code) {
  Number number = 0;
  const Dtype to = sizeof(Number) == sizeof(float) ? Dtype::kFloat32 : Dtype::kFloat64;
  cast_reference(
      {reinterpret_cast<const uint8_t*>(&code), reinterpret_cast<uint8_t*>(&number), 1, from, to, {}});
  return number;
}

template <class Number>
uint64_t code_of_number(Number number, Dtype to, bool saturate) {
  uint64_t code = 0;
  const Dtype from = sizeof(Number) == sizeof(float) ? Dtype::kFloat32 : Dtype::kFloat64;
  const CastOptions options{CastMode::kSpec, saturate};
  cast_reference(
      {reinterpret_cast<const uint8_t*>(&number), reinterpret_cast<uint8_t*>(&code), 1, from, to, options});
  return code;
}

template <class Number>
uint64_t integer_code(Number quotient, Number offset, const ScalingDescription& scaling) {
  const DtypeInfo& type = info_of(scaling.to);
  const bool is_signed = type.kind == DtypeKind::kInt;
  const bool is_tmfile = scaling.rules == QuantizeRules::kTmfile;
  const double high = std::ldexp(1.0, is_signed ? type.bits - 1 : type.bits) - 1;
  const double low = !is_signed ? 0 : is_tmfile && scaling.to == Dtype::kInt8 ? -high : -high - 1;
  const Number sum = quotient + offset;
  double whole = offset;
  if (!std::isnan(quotient)) whole = is_tmfile ? std::round(sum) : std::nearbyint(quotient) + double{offset};
  const auto code = static_cast<uint64_t>(static_cast<int64_t>(std::clamp(whole, low, high)));
  return type.bits == 64 ? code : code & ((uint64_t{1} << type.bits) - 1);
}

template <class Number>
uint64_t scaled_as(const ScalingDescription& scaling, Number scale, Number offset, uint64_t code) {
  const auto value = number_of<Number>(scaling.from, code);
  switch (scaling.kind) {
    case ScalingKind::kAffine:
      return code_of_number(std::fma(value, scale, offset), scaling.to, scaling.saturate);
    case ScalingKind::kDequantize: {
      const Number difference = value - offset;
      const Number product = difference * scale;
      return code_of_number(product, scaling.to, scaling.saturate);
    }
    case ScalingKind::kQuantize:
      break;
  }
  const Number quotient = value / scale;
  if (is_integer(scaling.to)) return integer_code(quotient, offset, scaling);
  return code_of_number(quotient, scaling.to, scaling.saturate);
}

// `entry` is the entry of the element's block.
inline uint64_t scaled_code(const ScalingDescription& scaling, size_t entry, uint64_t code) {
  const double scale = scaling.scales[entry];
  const double offset = scaling.offsets[entry];
  const DtypeInfo& from = info_of(scaling.from);
  const bool is_wide = from.bits >= 32 && scaling.from != Dtype::kFloat32;
  const bool is_dequantized = scaling.kind == ScalingKind::kDequantize;
  const bool in_double = scaling.to == Dtype::kFloat64 || (is_wide && !is_dequantized) ||
                         (scaling.to == Dtype::kInt32 && scaling.kind == ScalingKind::kQuantize);
  if (in_double) return scaled_as<double>(scaling, scale, offset, code);
  return scaled_as<float>(scaling, static_cast<float>(scale), static_cast<float>(offset), code);
}

// Whether a kind of scaling supports these types.
inline bool may_scale(ScalingKind kind, Dtype from, Dtype to) {
  const auto is_code = [](Dtype dtype) {
    const DtypeInfo& info = info_of(dtype);
    const bool is_small_float = is_float(dtype) && info.bits <= 8 && dtype != Dtype::kFloat8E8m0fnu;
    return is_small_float || (is_integer(dtype) && info.bits <= (info.kind == DtypeKind::kInt ? 32 : 16));
  };
  const bool is_real = !is_complex(from) && !is_complex(to);
  if (kind == ScalingKind::kQuantize) return is_real && is_code(to);
  if (kind == ScalingKind::kDequantize) return is_code(from) && is_float(to) && info_of(to).bits >= 16;
  return is_real && is_float(to);
}

}  // namespace tilework::test
