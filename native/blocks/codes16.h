// Sixteen codes of a byte in one register, by the compilers' vector extensions: the same code for SSE2, AVX2
// and NEON. Only what these extensions have no words for, widening to floats and tables of 16 entries, is
// written for each instruction set. Included by one file per instruction set; everything has internal
// linkage, as block_fields.h.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tilework {
namespace {

#define TILEWORK_INLINE_KERNEL [[gnu::always_inline]] inline

using Codes16 [[gnu::vector_size(16)]] = int8_t;
using Bytes16 [[gnu::vector_size(16)]] = uint8_t;
using Words8 [[gnu::vector_size(16)]] = uint16_t;
using Longs2 [[gnu::vector_size(16)]] = uint64_t;

template <class Vector>
TILEWORK_INLINE_KERNEL Vector vector_at(const uint8_t* at) {
  Vector vector;
  std::memcpy(&vector, at, sizeof vector);
  return vector;
}

// `mask`, below 2^(8 - shift), of each byte shifted to the right. Shifts of bytes do not exist on x64; of
// those of words, the bits that come from the neighbour are masked off.
TILEWORK_INLINE_KERNEL Codes16 bits_at(const uint8_t* at, int shift, uint8_t mask) {
  return reinterpret_cast<Codes16>(reinterpret_cast<Bytes16>(vector_at<Words8>(at) >> shift) & mask);
}

TILEWORK_INLINE_KERNEL Codes16 codes_of(uint64_t low, uint64_t high) {
  return reinterpret_cast<Codes16>(Longs2{low, high});
}

// values[code] of codes from 0 to 15.
TILEWORK_INLINE_KERNEL Codes16 look_up(const int8_t (&values)[16], Codes16 codes) {
#if defined(__aarch64__)
  return reinterpret_cast<Codes16>(vqtbl1q_s8(vld1q_s8(values), reinterpret_cast<uint8x16_t>(codes)));
#elif defined(__AVX2__)
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
  return reinterpret_cast<Codes16>(_mm_shuffle_epi8(table, reinterpret_cast<__m128i>(codes)));
#else
  for (int i = 0; i < 16; ++i) codes[i] = values[codes[i]];
  return codes;
#endif
}

// numbers[i] = scale * codes[i] + offset; without `has_offset` nothing is added, which would turn -0 to 0.
template <bool has_offset>
TILEWORK_INLINE_KERNEL void store_scaled(Codes16 codes, float scale, float offset, float* numbers) {
#if defined(__aarch64__)
  const auto bytes = reinterpret_cast<int8x16_t>(codes);
  const int16x8_t halves[] = {vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)};
  for (int i = 0; i < 2; ++i) {
    const float32x4_t low = vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(halves[i]))), scale);
    const float32x4_t high = vmulq_n_f32(vcvtq_f32_s32(vmovl_high_s16(halves[i])), scale);
    vst1q_f32(numbers + 8 * i, has_offset ? vaddq_f32(low, vdupq_n_f32(offset)) : low);
    vst1q_f32(numbers + 8 * i + 4, has_offset ? vaddq_f32(high, vdupq_n_f32(offset)) : high);
  }
#elif defined(__AVX2__)
  const auto bytes = reinterpret_cast<__m128i>(codes);
  const __m128i halves[] = {bytes, _mm_unpackhi_epi64(bytes, bytes)};
  for (int i = 0; i < 2; ++i) {
    const __m256 wide = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(halves[i]));
    const __m256 product = _mm256_mul_ps(wide, _mm256_set1_ps(scale));
    _mm256_storeu_ps(numbers + 8 * i, has_offset ? _mm256_add_ps(product, _mm256_set1_ps(offset)) : product);
  }
#else
  int8_t bytes[16];
  std::memcpy(bytes, &codes, sizeof bytes);
  for (int i = 0; i < 16; ++i) {
    const float product = scale * static_cast<float>(bytes[i]);
    numbers[i] = has_offset ? product + offset : product;
  }
#endif
}

TILEWORK_INLINE_KERNEL void store_scaled(Codes16 codes, float scale, float* numbers) {
  store_scaled<false>(codes, scale, 0, numbers);
}

TILEWORK_INLINE_KERNEL void store_scaled(Codes16 codes, float scale, float offset, float* numbers) {
  store_scaled<true>(codes, scale, offset, numbers);
}

}  // namespace
}  // namespace tilework
