// Reads the fields of blocks, which have any alignment. Included by one file per instruction set; everything
// has internal linkage, because the linker must not replace a function by one compiled for another CPU.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace tilework {
namespace {

template <class Number>
inline Number number_at(const uint8_t* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

inline uint16_t u16_at(const uint8_t* at) { return number_at<uint16_t>(at); }
inline uint32_t u32_at(const uint8_t* at) { return number_at<uint32_t>(at); }

// A float16 as a float32, which holds all of them.
inline float float_of_half(uint16_t half) {
#if defined(__F16C__)
  return _cvtsh_ss(half);
#else
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 31;
  const uint32_t mantissa = half & 1023;
  if (exponent == 0) {
    // Subnormals are multiples of 2^-24.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t widened = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | widened << 23 | mantissa << 13);
#endif
}

inline float half_at(const uint8_t* at) { return float_of_half(u16_at(at)); }

// 2^(code - 128), the scale of an mxfp4 block: half of what float8_e8m0fnu means, as its values are doubled.
// No code is NaN.
inline float power_of_two(uint8_t code) {
  return std::bit_cast<float>(code < 2 ? 0x200000U << code : static_cast<uint32_t>(code - 1) << 23);
}

// The scale of 16 elements of nvfp4: half of an unsigned float with 4 bits of exponent and 3 of mantissa. Bit
// 7 is ignored, except that 0x7F is 0 and 0xFF is not.
inline float nvfp4_scale(uint8_t code) {
  if (code == 0x7F) return 0;
  const uint32_t exponent = code >> 3 & 15;
  const uint32_t mantissa = code & 7;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  return std::bit_cast<float>((exponent + 119) << 23 | mantissa << 20);
}

// The values of 4-bit codes: of iq4_nl and iq4_xs, and those of mxfp4 and nvfp4 doubled. The code of -0 means
// 0.
constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Scale and offset of the 32 elements `group` of q4_k and q5_k, 6 bits each, in the 12 bytes at `scales`.
inline int k_scale(const uint8_t* scales, int group) {
  return group < 4 ? scales[group] & 63 : (scales[group + 4] & 15) | (scales[group - 4] >> 6) << 4;
}
inline int k_offset(const uint8_t* scales, int group) {
  return group < 4 ? scales[group + 4] & 63 : scales[group + 4] >> 4 | (scales[group] >> 6) << 4;
}

// Scale of the 16 elements `group` of q3_k, in the 12 bytes at `scales`.
inline int q3_k_scale(const uint8_t* scales, int group) {
  const int low = scales[group % 8] >> 4 * (group / 8) & 15;
  const int high = scales[8 + group % 4] >> 2 * (group / 4) & 3;
  return (low | high << 4) - 32;
}

// Scale of the 32 elements `group` of iq4_xs.
inline int iq4_xs_scale(const uint8_t* block, int group) {
  const int low = block[4 + group / 2] >> 4 * (group % 2) & 15;
  return (low | (u16_at(block + 2) >> 2 * group & 3) << 4) - 32;
}

// The float16 of an iq1_m block, whose four nibbles are the upper ones of its four scales.
inline float iq1_m_half(const uint8_t* block) {
  uint32_t half = 0;
  for (int part = 0; part < 4; ++part)
    half |= static_cast<uint32_t>(u16_at(block + 48 + 2 * part) >> 12) << 4 * part;
  return float_of_half(static_cast<uint16_t>(half));
}

}  // namespace
}  // namespace tilework
