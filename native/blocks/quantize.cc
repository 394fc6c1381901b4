#include "blocks/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "error.h"

namespace tilework {
namespace {

// To nearest, ties to even; infinite from 65520 on.
uint16_t half_of(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x38800000) {
    // The sum with 0.5 has the unit of subnormal float16, 2^-24, and is rounded to it.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5F)));
  }
  const uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1) - (112U << 23);
  return static_cast<uint16_t>(sign | rounded >> 13);
}

bool is_infinite_half(uint16_t half) { return (half & 0x7FFF) == 0x7C00; }

void store_half(uint8_t* at, uint16_t half) { std::memcpy(at, &half, sizeof half); }

// 1 / scale, or 0 where that is not finite.
float reciprocal(float scale) {
  const float inverse = 1 / scale;
  return std::isfinite(inverse) ? inverse : 0;
}

// To the nearest whole number, halves away from 0. @param number below 2^22
int round_away(float number) {
  const float magnitude = std::fabs(number);
  const int whole = static_cast<int>(magnitude);
  const int rounded = whole + (magnitude - static_cast<float>(whole) >= 0.5F ? 1 : 0);
  return number < 0 ? -rounded : rounded;
}

template <int count>
float largest_magnitude(const float* x) {
  float most = 0;
  for (int i = 0; i < count; ++i) most = std::max(most, std::fabs(x[i]));
  return most;
}

// The number of largest magnitude, the first of several.
template <int count>
float extreme(const float* x) {
  const float most = largest_magnitude<count>(x);
  return *std::find_if(x, x + count, [most](float each) { return std::fabs(each) == most; });
}

// Nibbles of 32 codes: byte i has the codes i and i + 16.
void store_nibbles(const uint8_t* codes, uint8_t* bytes) {
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<uint8_t>((codes[i] & 15) | (codes[i + 16] & 15) << 4);
}

void store_fifth_bits(const uint8_t* codes, uint8_t* bytes) {
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(codes[i] >> 4) << i;
  std::memcpy(bytes, &bits, sizeof bits);
}

// Writes one block of finite numbers; false where a scale overflows float16.
template <BlockType type>
bool quantize(const float* x, uint8_t* b);

template <>
bool quantize<BlockType::kQ80>(const float* x, uint8_t* b) {
  const float d = largest_magnitude<32>(x) / 127;
  const float inverse = reciprocal(d);
  const uint16_t half = half_of(d);
  store_half(b, half);
  for (int i = 0; i < 32; ++i) b[2 + i] = static_cast<uint8_t>(round_away(x[i] * inverse));
  return !is_infinite_half(half);
}

// q4_0 and q5_0. @param middle half of the number of codes. Returns the scale.
float symmetric_codes(const float* x, int middle, uint8_t* codes) {
  const float d = extreme<32>(x) / static_cast<float>(-middle);
  const float inverse = reciprocal(d);
  const float shift = static_cast<float>(middle) + 0.5F;
  for (int i = 0; i < 32; ++i) {
    const float product = x[i] * inverse;
    codes[i] = static_cast<uint8_t>(std::min(2 * middle - 1, static_cast<int>(product + shift)));
  }
  return d;
}

template <>
bool quantize<BlockType::kQ40>(const float* x, uint8_t* b) {
  uint8_t codes[32];
  const uint16_t half = half_of(symmetric_codes(x, 8, codes));
  store_half(b, half);
  store_nibbles(codes, b + 2);
  return !is_infinite_half(half);
}

template <>
bool quantize<BlockType::kQ50>(const float* x, uint8_t* b) {
  uint8_t codes[32];
  const uint16_t half = half_of(symmetric_codes(x, 16, codes));
  store_half(b, half);
  store_fifth_bits(codes, b + 2);
  store_nibbles(codes, b + 6);
  return !is_infinite_half(half);
}

// q4_1 and q5_1. @param top the largest code. Stores scale and offset; false where one overflows.
bool offset_codes(const float* x, int top, uint8_t* codes, uint8_t* b) {
  const auto [least, most] = std::minmax_element(x, x + 32);
  const float lo = *least;
  const float d = (*most - lo) / static_cast<float>(top);
  const float inverse = reciprocal(d);
  for (int i = 0; i < 32; ++i) {
    const float product = (x[i] - lo) * inverse;
    codes[i] = static_cast<uint8_t>(std::min(top, static_cast<int>(product + 0.5F)));
  }
  const uint16_t scale = half_of(d);
  const uint16_t offset = half_of(lo);
  store_half(b, scale);
  store_half(b + 2, offset);
  return !is_infinite_half(scale) && !is_infinite_half(offset);
}

template <>
bool quantize<BlockType::kQ41>(const float* x, uint8_t* b) {
  uint8_t codes[32];
  const bool fits = offset_codes(x, 15, codes, b);
  store_nibbles(codes, b + 4);
  return fits;
}

template <>
bool quantize<BlockType::kQ51>(const float* x, uint8_t* b) {
  uint8_t codes[32];
  const bool fits = offset_codes(x, 31, codes, b);
  store_fifth_bits(codes, b + 4);
  store_nibbles(codes, b + 8);
  return fits;
}

// Codes 0, 1, 2 of tq1_0 and tq2_0. Returns the scale as float16.
uint16_t ternary_codes(const float* x, uint8_t* codes) {
  const float d = largest_magnitude<256>(x);
  const float inverse = reciprocal(d);
  for (int i = 0; i < 256; ++i) codes[i] = static_cast<uint8_t>(round_away(x[i] * inverse) + 1);
  return half_of(d);
}

// `digits` ternary digits of stride `stride` as a fraction of 256, rounded up; the first is the most
// significant of five.
uint8_t trits_byte(const uint8_t* codes, int stride, int digits) {
  constexpr int kPowers[] = {81, 27, 9, 3, 1};
  int sum = 0;
  for (int digit = 0; digit < digits; ++digit) sum += codes[stride * digit] * kPowers[digit];
  return static_cast<uint8_t>((sum * 256 + 242) / 243);
}

template <>
bool quantize<BlockType::kTq10>(const float* x, uint8_t* b) {
  uint8_t codes[256];
  const uint16_t half = ternary_codes(x, codes);
  for (int i = 0; i < 32; ++i) b[i] = trits_byte(codes + i, 32, 5);
  for (int i = 0; i < 16; ++i) b[32 + i] = trits_byte(codes + 160 + i, 16, 5);
  for (int i = 0; i < 4; ++i) b[48 + i] = trits_byte(codes + 240 + i, 4, 4);
  store_half(b + 52, half);
  return !is_infinite_half(half);
}

template <>
bool quantize<BlockType::kTq20>(const float* x, uint8_t* b) {
  uint8_t codes[256];
  const uint16_t half = ternary_codes(x, codes);
  for (int i = 0; i < 64; ++i) {
    const uint8_t* const four = codes + 128 * (i / 32) + i % 32;
    b[i] = static_cast<uint8_t>(four[0] | four[32] << 2 | four[64] << 4 | four[96] << 6);
  }
  store_half(b + 64, half);
  return !is_infinite_half(half);
}

template <>
bool quantize<BlockType::kMxfp4>(const float* x, uint8_t* b) {
  const float most = largest_magnitude<32>(x);
  // Rounded to float32 before it is rounded down: just below a power of two the logarithm is whole.
  const float logarithm = std::floor(static_cast<float>(std::log2(static_cast<double>(most))));
  const int exponent = most == 0 ? 0 : std::max(0, static_cast<int>(logarithm) + 125);
  const float d =
      std::bit_cast<float>(exponent < 2 ? 0x200000U << exponent : static_cast<uint32_t>(exponent - 1) << 23);
  constexpr float kValues[] = {0, 1, 2, 3, 4, 6, 8, 12};
  uint8_t codes[32];
  for (int i = 0; i < 32; ++i) {
    const float magnitude = std::fabs(x[i]);
    float least = magnitude;
    int best = 0;
    for (int code = 1; code < 8; ++code) {
      const float error = std::fabs(d * kValues[code] - magnitude);
      if (error >= least) continue;
      least = error;
      best = code;
    }
    codes[i] = static_cast<uint8_t>(best | (x[i] < 0 && best > 0 ? 8 : 0));
  }
  b[0] = static_cast<uint8_t>(exponent);
  store_nibbles(codes, b + 1);
  return true;
}

using Quantize = bool (*)(const float* numbers, uint8_t* block);

Quantize quantize_of(BlockType type) {
  switch (type) {
    case BlockType::kQ80:
      return quantize<BlockType::kQ80>;
    case BlockType::kQ40:
      return quantize<BlockType::kQ40>;
    case BlockType::kQ41:
      return quantize<BlockType::kQ41>;
    case BlockType::kQ50:
      return quantize<BlockType::kQ50>;
    case BlockType::kQ51:
      return quantize<BlockType::kQ51>;
    case BlockType::kTq10:
      return quantize<BlockType::kTq10>;
    case BlockType::kTq20:
      return quantize<BlockType::kTq20>;
    case BlockType::kMxfp4:
      return quantize<BlockType::kMxfp4>;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_quantize(BlockType type) { return quantize_of(type) != nullptr; }

int64_t quantize_to_blocks(BlockType type, const float* numbers, int64_t count, uint8_t* blocks) {
  const BlockTypeInfo& info = info_of(type);
  const Quantize run = quantize_of(type);
  if (run == nullptr) {
    throw Error(ErrorCode::kDtype,
                std::string("Numbers are not quantized to ") + info.name +
                    "; the types are q8_0, q4_0, q4_1, q5_0, q5_1, tq1_0, tq2_0 and mxfp4.");
  }
  for (int64_t block = 0; block < count; ++block) {
    // An aligned copy: JavaScript may give numbers at any address.
    float x[kMaxBlockElements];
    std::memcpy(x, numbers + block * info.elements, static_cast<size_t>(info.elements) * sizeof(float));
    const float* const bad =
        std::find_if_not(x, x + info.elements, [](float each) { return std::isfinite(each); });
    if (bad != x + info.elements) return block * info.elements + (bad - x);
    uint8_t made[kMaxBlockElements];
    if (!run(x, made)) return block * info.elements;
    std::memcpy(blocks + block * info.bytes, made, static_cast<size_t>(info.bytes));
  }
  return -1;
}

}  // namespace tilework
