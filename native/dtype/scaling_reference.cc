// The exact reference of all scalings: one element at a time, by the rules of dtype/scaling.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "dtype/scalings.h"

namespace tilework {
namespace {

template <class Number>
Number number_at(const uint8_t* bytes, int64_t index) {
  Number value;
  std::memcpy(&value, bytes + index * static_cast<int64_t>(sizeof(Number)), sizeof(Number));
  return value;
}

template <Dtype dtype>
using NumberOf = std::conditional_t<
    dtype == Dtype::kInt8, int8_t,
    std::conditional_t<dtype == Dtype::kUint8, uint8_t,
                       std::conditional_t<dtype == Dtype::kInt32, int32_t,
                                          std::conditional_t<dtype == Dtype::kFloat32, float, double>>>>;

// Rounds to a code of an integer type. Limits and offsets are integers below 2^32 and exact as doubles. Only
// kTmfile rounds the sum of quotient and offset, in the type of the quotient.
template <class Number>
double code_of(Number quotient, Number offset, const ScalingArguments& arguments) {
  if (std::isnan(quotient)) return offset;
  const Number sum = quotient + offset;
  const double rounded = arguments.rules == QuantizeRules::kTmfile
                             ? std::round(sum)
                             : static_cast<double>(std::nearbyint(quotient)) + offset;
  return std::clamp(rounded, arguments.low, arguments.high);
}

}  // namespace

template <ScalingKind kind, Dtype from, Dtype to>
void scale_reference(const ScalingArguments& arguments) {
  using In = NumberOf<from>;
  using Out = NumberOf<to>;
  using Number = std::conditional_t<std::is_same_v<In, double>, double, float>;
  for (int64_t i = 0; i < arguments.count; ++i) {
    const auto value = static_cast<Number>(number_at<In>(arguments.source, i));
    const Number scale = static_cast<const Number*>(arguments.scales)[i * arguments.stride];
    const Number offset = static_cast<const Number*>(arguments.offsets)[i * arguments.stride];
    Out result{};
    if constexpr (kind == ScalingKind::kAffine) {
      result = std::fma(value, scale, offset);
    } else if constexpr (kind == ScalingKind::kDequantize) {
      const Number difference = value - offset;
      result = difference * scale;
    } else {
      const Number quotient = value / scale;
      result = std::is_integral_v<Out> ? static_cast<Out>(code_of(quotient, offset, arguments))
                                       : static_cast<Out>(quotient);
    }
    std::memcpy(arguments.destination + i * static_cast<int64_t>(sizeof(Out)), &result, sizeof(Out));
  }
}

#define TILEWORK_INSTANTIATE_kAvx2(kind, from, to)
#define TILEWORK_INSTANTIATE_kPortable(kind, from, to)
#define TILEWORK_INSTANTIATE_kReference(kind, from, to) \
  template void scale_reference<ScalingKind::kind, Dtype::from, Dtype::to>(const ScalingArguments&);
#define TILEWORK_SCALING_KERNEL(kind, from, to, isa) TILEWORK_INSTANTIATE_##isa(kind, from, to)
#include "dtype/scalings.def"
#undef TILEWORK_SCALING_KERNEL

}  // namespace tilework
