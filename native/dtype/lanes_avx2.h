// Lanes of eight float32 with AVX2 and F16C, and how elements of other types become such lanes and lanes such
// elements. Included by files that are compiled for them only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "cpu/registers_avx2.h"
#include "dtype/dtypes.h"

namespace tilework {
namespace {

struct Block {
  __m256 lanes[4];
};

TILEWORK_INLINE __m256i all(int value) { return _mm256_set1_epi32(value); }

TILEWORK_INLINE __m256i bits_of(__m256 value) { return _mm256_castps_si256(value); }

TILEWORK_INLINE __m256 floats_of(__m256i bits) { return _mm256_castsi256_ps(bits); }

// Packs the eight lanes of two registers to 16 bits each, in order.
TILEWORK_INLINE __m256i in_order(__m256i interleaved) { return _mm256_permute4x64_epi64(interleaved, 0xD8); }

// Restores the order of 32 bytes after two packs, which leave groups of four.
TILEWORK_INLINE __m256i bytes_in_order(__m256i packed) {
  return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Decodes eight codes of e8m0, one per lane.
TILEWORK_INLINE __m256 decode_scale(__m256i codes) {
  const __m256i normal = _mm256_slli_epi32(codes, 23);
  const __m256i is_zero = _mm256_cmpeq_epi32(codes, _mm256_setzero_si256());
  const __m256i is_nan = _mm256_cmpeq_epi32(codes, all(0xff));
  // 2^-127 is a subnormal.
  const __m256i numbers = _mm256_blendv_epi8(normal, all(1 << 22), is_zero);
  return floats_of(_mm256_blendv_epi8(numbers, all(0x7fc00000), is_nan));
}

TILEWORK_INLINE __m256 decode_bfloat16(__m256i codes) {
  const __m256i bits = _mm256_slli_epi32(codes, 16);
  const __m256i magnitude = _mm256_and_si256(bits, all(0x7fffffff));
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, all(0x7f800000));
  return floats_of(_mm256_or_si256(bits, _mm256_and_si256(is_nan, all(0x400000))));
}

// Eight elements of 8 or 16 bits, which fill the low half of `codes` or all of it.
template <Dtype from>
TILEWORK_INLINE __m256 decode_lanes(__m128i codes) {
  if constexpr (from == Dtype::kFloat16) return _mm256_cvtph_ps(codes);
  if constexpr (from == Dtype::kBfloat16) return decode_bfloat16(_mm256_cvtepu16_epi32(codes));
  if constexpr (from == Dtype::kInt8) return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
  if constexpr (from == Dtype::kUint8) return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(codes));
  if constexpr (from == Dtype::kInt16) return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(codes));
  if constexpr (from == Dtype::kUint16) return _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(codes));
  if constexpr (from == Dtype::kFloat8E8m0fnu) return decode_scale(_mm256_cvtepu8_epi32(codes));
}

// Loads eight elements of whole bytes.
template <Dtype from, int kBits>
TILEWORK_INLINE __m256 load_lanes(const uint8_t* at) {
  if constexpr (kBits == 32) return floats_of(load32(at));
  if constexpr (kBits == 16) return decode_lanes<from>(load16(at));
  if constexpr (kBits == 8) return decode_lanes<from>(load8(at));
}

// Rounds to nearest even by a carry; the result is in the upper half of each lane. The carry would destroy
// NaN.
TILEWORK_INLINE __m256i round_bfloat16(__m256i bits) {
  const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), all(1));
  return _mm256_add_epi32(_mm256_add_epi32(bits, all(0x7fff)), even);
}

TILEWORK_INLINE __m256i round_bfloat16_or_nan(__m256 value) {
  const __m256i bits = bits_of(value);
  const __m256i sign = _mm256_and_si256(bits, all(static_cast<int>(0x80000000)));
  const __m256i is_nan = bits_of(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(round_bfloat16(bits), _mm256_or_si256(sign, all(0x7fc00000)), is_nan);
}

// Packs the upper halves of the lanes of two registers, in order.
TILEWORK_INLINE __m256i upper_halves(__m256i first, __m256i second) {
  return in_order(_mm256_packus_epi32(_mm256_srli_epi32(first, 16), _mm256_srli_epi32(second, 16)));
}

// Rounds toward zero; NaN gives 0. Values that do not fit an int32 become the smallest int32, or `max` if
// they are positive.
TILEWORK_INLINE __m256i truncate(__m256 value, float max) {
  const __m256 number = _mm256_and_ps(value, _mm256_cmp_ps(value, value, _CMP_ORD_Q));
  return _mm256_cvttps_epi32(_mm256_min_ps(number, _mm256_set1_ps(max)));
}

// Saturates int16 lanes in pack order to bytes in order.
template <Dtype to>
TILEWORK_INLINE __m256i pack_bytes_of(__m256i low, __m256i high) {
  return bytes_in_order(to == Dtype::kInt8 ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high));
}

template <Dtype to>
TILEWORK_INLINE __m256i encode_bytes_or_nan(const Block& block) {
  __m256i whole[4];
  for (int i = 0; i < 4; ++i) whole[i] = truncate(block.lanes[i], to == Dtype::kInt8 ? 127 : 255);
  return pack_bytes_of<to>(_mm256_packs_epi32(whole[0], whole[1]), _mm256_packs_epi32(whole[2], whole[3]));
}

template <Dtype to>
TILEWORK_INLINE __m256i encode_bytes(const Block& block) {
  __m256i whole[4];
  for (int i = 0; i < 4; ++i) whole[i] = _mm256_cvttps_epi32(block.lanes[i]);
  const __m256i low = _mm256_packs_epi32(whole[0], whole[1]);
  const __m256i high = _mm256_packs_epi32(whole[2], whole[3]);
  // The conversion gives the smallest int32 for NaN and for values that do not fit; the packs saturate it to
  // the smallest int16.
  const __m256i is_least =
      _mm256_cmpeq_epi16(_mm256_min_epi16(low, high), _mm256_set1_epi16(static_cast<int16_t>(0x8000)));
  if (__builtin_expect(_mm256_movemask_epi8(is_least) != 0, 0)) return encode_bytes_or_nan<to>(block);
  return pack_bytes_of<to>(low, high);
}

template <Dtype to>
TILEWORK_INLINE __m256i encode_words(__m256 first, __m256 second) {
  if constexpr (to == Dtype::kInt16) {
    return in_order(_mm256_packs_epi32(truncate(first, 32767), truncate(second, 32767)));
  }
  if constexpr (to == Dtype::kUint16) {
    return in_order(_mm256_packus_epi32(truncate(first, 65535), truncate(second, 65535)));
  }
  if constexpr (to == Dtype::kFloat16) {
    return _mm256_set_m128i(_mm256_cvtps_ph(second, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                            _mm256_cvtps_ph(first, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
}

}  // namespace
}  // namespace tilework
