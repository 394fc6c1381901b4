// The kernels of casts.def for any CPU.
#include <array>

#include "dtype/cast_numbers.h"
#include "dtype/casts.h"
#include "dtype/exact_number.h"

namespace tilework {
namespace {

// Bits of a sub-byte type; 0 for every other type.
template <Dtype dtype>
constexpr int kPackedBits = dtype == Dtype::kInt4 || dtype == Dtype::kUint4   ? 4
                            : dtype == Dtype::kInt2 || dtype == Dtype::kUint2 ? 2
                                                                              : 0;

// Unpacks to bytes, sign-extended for signed types.
template <int kBits, bool kIsSigned>
void unpack(const CastArguments& arguments) {
  constexpr int kPerByte = 8 / kBits;
  constexpr unsigned kSign = kIsSigned ? 1u << (kBits - 1) : 0;
  const uint8_t* __restrict source = arguments.source;
  uint8_t* __restrict destination = arguments.destination;
  const int64_t count = arguments.count;
  for (int64_t i = 0; i < count; ++i) {
    const unsigned bits = (source[i / kPerByte] >> (i % kPerByte * kBits)) & ((1u << kBits) - 1);
    destination[i] = static_cast<uint8_t>((bits ^ kSign) - kSign);
  }
}

// Packs the low bits of bytes; unused bits of the last byte are zero.
template <int kBits>
void pack(const CastArguments& arguments) {
  constexpr int64_t kPerByte = 8 / kBits;
  const uint8_t* __restrict source = arguments.source;
  uint8_t* __restrict destination = arguments.destination;
  const int64_t count = arguments.count;
  for (int64_t first = 0; first < count; first += kPerByte) {
    unsigned byte = 0;
    const int64_t here = count - first < kPerByte ? count - first : kPerByte;
    for (int64_t i = 0; i < here; ++i) byte |= (source[first + i] & ((1u << kBits) - 1)) << (i * kBits);
    destination[first / kPerByte] = static_cast<uint8_t>(byte);
  }
}

template <Dtype dtype>
constexpr bool kIsFloat6 = dtype == Dtype::kFloat6E2m3fn || dtype == Dtype::kFloat6E3m2fn;

// Four codes of 6 bits are three bytes, the first in the lowest bits.
constexpr int64_t kFloat6Group = 4;
constexpr int64_t kFloat6GroupBytes = 3;

std::array<float, 64> float6_values(Dtype dtype) {
  std::array<float, 64> values;
  for (uint64_t code = 0; code < values.size(); ++code) {
    const ExactNumber number = decode(info_of(dtype), code);
    values[code] = std::ldexp(static_cast<float>(number.significand), number.exponent);
    if (number.is_negative) values[code] = -values[code];
  }
  return values;
}

void decode_float6(const CastArguments& arguments) {
  static const std::array<float, 64> kTables[] = {float6_values(Dtype::kFloat6E2m3fn),
                                                  float6_values(Dtype::kFloat6E3m2fn)};
  const float* table = kTables[arguments.from == Dtype::kFloat6E2m3fn ? 0 : 1].data();
  for (int64_t i = 0; i < arguments.count; i += kFloat6Group) {
    const uint8_t* source = arguments.source + i / kFloat6Group * kFloat6GroupBytes;
    const auto here = static_cast<int>(std::min(kFloat6Group, arguments.count - i));
    unsigned codes = 0;
    for (int byte = 0; byte * 8 < here * 6; ++byte)
      codes |= static_cast<unsigned>(source[byte]) << (8 * byte);
    for (int at = 0; at < here; ++at) {
      const float value = table[(codes >> (6 * at)) & 63];
      std::memcpy(arguments.destination + (i + at) * static_cast<int64_t>(sizeof(value)), &value,
                  sizeof(value));
    }
  }
}

// Rounds the magnitude to nearest even: below the normal numbers by an addition that leaves as many fraction
// bits as the code has, above by the carry of half a step.
unsigned float6_code(float value, const DtypeInfo& type, CastMode mode) {
  constexpr int kFloatMantissa = 23;
  constexpr int kFloatBias = 127;
  constexpr unsigned kSign = 32;
  constexpr unsigned kLargest = 31;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & INT32_MAX;
  const unsigned sign = bits >> 31 != 0 ? kSign : 0;
  if (magnitude > 0x7f800000) return mode == CastMode::kSpec || sign == 0 ? kSign : 0;
  const int shift = kFloatMantissa - type.mantissa_bits;
  const auto first_normal = static_cast<uint32_t>(kFloatBias + 1 - type.bias) << kFloatMantissa;
  if (magnitude < first_normal) {
    const auto unit = std::bit_cast<float>(first_normal + (static_cast<uint32_t>(shift) << kFloatMantissa));
    return sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + unit) & kLargest);
  }
  const uint32_t even = ((magnitude >> shift) & 1) + (1u << (shift - 1)) - 1;
  const uint32_t code = ((magnitude + even - first_normal) >> shift) + (1u << type.mantissa_bits);
  return sign | std::min(code, kLargest);
}

void encode_float6(const CastArguments& arguments) {
  const DtypeInfo& type = info_of(arguments.to);
  for (int64_t i = 0; i < arguments.count; i += kFloat6Group) {
    const auto here = static_cast<int>(std::min(kFloat6Group, arguments.count - i));
    unsigned codes = 0;
    for (int at = 0; at < here; ++at) {
      float value;
      std::memcpy(&value, arguments.source + (i + at) * static_cast<int64_t>(sizeof(value)), sizeof(value));
      codes |= float6_code(value, type, arguments.options.mode) << (6 * at);
    }
    uint8_t* destination = arguments.destination + i / kFloat6Group * kFloat6GroupBytes;
    for (int byte = 0; byte * 8 < here * 6; ++byte)
      destination[byte] = static_cast<uint8_t>(codes >> (8 * byte));
  }
}

}  // namespace

template <Dtype from, Dtype to, CastRounding rounding>
void cast_portable(const CastArguments& arguments) {
  if constexpr (kIsFloat6<from>) {
    decode_float6(arguments);
  } else if constexpr (kIsFloat6<to>) {
    encode_float6(arguments);
  } else if constexpr (kPackedBits < from >> 0) {
    unpack<kPackedBits<from>, to == Dtype::kInt8>(arguments);
  } else if constexpr (kPackedBits<to> > 0) {
    pack<kPackedBits<to>>(arguments);
  } else {
    cast_numbers<rounding, from, to>(arguments);
  }
}

#define TILEWORK_INSTANTIATE_kPortable(from, to, rounding) \
  template void cast_portable<Dtype::from, Dtype::to, CastRounding::rounding>(const CastArguments&);
#define TILEWORK_INSTANTIATE_kAvx2(from, to, rounding)
#define TILEWORK_INSTANTIATE_kNeon(from, to, rounding)
#define TILEWORK_CAST_KERNEL(from, to, isa, rounding) TILEWORK_INSTANTIATE_##isa(from, to, rounding)
#include "dtype/casts.def"
#undef TILEWORK_CAST_KERNEL

}  // namespace tilework
