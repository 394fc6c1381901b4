// Casts with AVX2, F16C and FMA. This file alone is compiled for them, so it must not be entered on another
// processor, and must not define anything that others might link to: all of it but the kernels is internal.
//
// What is exact in float32 comes and goes by way of four registers of eight float32 lanes. What the compiler
// does as well by itself is in cast_numbers.h.
#include <immintrin.h>

#include <algorithm>

#include "dtype/cast_numbers.h"
#include "dtype/casts.h"

namespace tilework {
namespace {

#define TILEWORK_INLINE [[gnu::always_inline]] inline

// Elements that a kernel takes at a time: 32 codes of a byte fill a register.
constexpr int64_t kBlock = 32;

struct Block {
  __m256 lanes[4];
};

TILEWORK_INLINE __m256i load32(const uint8_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
TILEWORK_INLINE __m128i load16(const uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
TILEWORK_INLINE __m128i load8(const uint8_t* at) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
}
TILEWORK_INLINE void store32(uint8_t* at, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), value);
}
TILEWORK_INLINE void store16(uint8_t* at, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at), value);
}
TILEWORK_INLINE __m256i all(int value) { return _mm256_set1_epi32(value); }
TILEWORK_INLINE __m256i bits_of(__m256 value) { return _mm256_castps_si256(value); }
TILEWORK_INLINE __m256 floats_of(__m256i bits) { return _mm256_castsi256_ps(bits); }

// The eight lanes of each of two registers, in order, each cut to 16 bits.
TILEWORK_INLINE __m256i in_order(__m256i interleaved) { return _mm256_permute4x64_epi64(interleaved, 0xD8); }

// 32 lanes as 32 bytes in order, by two packs that leave groups of four: this puts them in their places.
TILEWORK_INLINE __m256i bytes_in_order(__m256i packed) {
  return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Lanes between 0 and 255.
TILEWORK_INLINE __m256i pack_bytes(const __m256i (&lanes)[4]) {
  const __m256i low = _mm256_packus_epi32(lanes[0], lanes[1]);
  const __m256i high = _mm256_packus_epi32(lanes[2], lanes[3]);
  return bytes_in_order(_mm256_packus_epi16(low, high));
}

// Two bytes that hold 4 bits each become one; the first gives the low half.
TILEWORK_INLINE __m128i pack_nibbles(__m256i bytes) {
  const __m256i masked = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
  // low * 1 + high * 16 of each pair.
  const __m256i pairs = _mm256_maddubs_epi16(masked, _mm256_set1_epi16(0x1001));
  return _mm256_castsi256_si128(in_order(_mm256_packus_epi16(pairs, pairs)));
}

// 16 bytes become 32 of 4 bits each.
TILEWORK_INLINE __m256i unpack_nibbles(const uint8_t* at) {
  const __m256i pairs = _mm256_cvtepu8_epi16(load16(at));
  const __m256i high = _mm256_slli_epi16(pairs, 4);
  return _mm256_and_si256(_mm256_or_si256(pairs, high), _mm256_set1_epi8(15));
}

// The sign of each of 32 4-bit integers becomes that of its byte.
TILEWORK_INLINE __m256i extend_signs(__m256i nibbles) {
  const __m256i eight = _mm256_set1_epi8(8);
  return _mm256_sub_epi8(_mm256_xor_si256(nibbles, eight), eight);
}

// How a float below 16 bits uses its bits.
template <Dtype dtype>
struct Fields;
#define TILEWORK_FIELDS(name, mantissa, exponent_bias, kind) \
  template <>                                                \
  struct Fields<Dtype::name> {                               \
    static constexpr int kMantissa = mantissa;               \
    static constexpr int kBias = exponent_bias;              \
    static constexpr Specials kSpecials = Specials::kind;    \
  };
#define TILEWORK_DTYPE(enumerator, name, bits, kind, mantissa_bits, bias, specials) \
  TILEWORK_FIELDS(enumerator, mantissa_bits, bias, specials)
#include "dtype/dtypes.def"
#undef TILEWORK_DTYPE
#undef TILEWORK_FIELDS

// Magnitudes of codes, one a lane, to the values they stand for: the bits go where a float32 has them and the
// exponent is raised. Of a subnormal the leading one that the raise made up is taken away again.
template <Dtype from>
TILEWORK_INLINE __m256i widen_magnitude(__m256i magnitude) {
  using F = Fields<from>;
  constexpr int kShift = 23 - F::kMantissa;
  constexpr int kRaise = 127 - F::kBias;
  const __m256i moved = _mm256_slli_epi32(magnitude, kShift);
  const __m256i normal = _mm256_add_epi32(moved, all(kRaise << 23));
  const __m256i least = all((kRaise + 1) << 23);
  const __m256 subnormal = _mm256_sub_ps(floats_of(_mm256_add_epi32(moved, least)), floats_of(least));
  const __m256i is_subnormal = _mm256_cmpgt_epi32(all(1 << 23), moved);
  return _mm256_blendv_epi8(normal, bits_of(subnormal), is_subnormal);
}

// Eight codes, one a lane.
template <Dtype from>
TILEWORK_INLINE __m256 decode_float8(__m256i codes) {
  constexpr Specials kSpecials = Fields<from>::kSpecials;
  const __m256i nan_bits = all(0x7fc00000);
  if constexpr (kSpecials == Specials::kScale) {
    const __m256i normal = _mm256_slli_epi32(codes, 23);
    const __m256i is_zero = _mm256_cmpeq_epi32(codes, _mm256_setzero_si256());
    const __m256i is_nan = _mm256_cmpeq_epi32(codes, all(0xff));
    // 2^-127 is a subnormal.
    const __m256i numbers = _mm256_blendv_epi8(normal, all(1 << 22), is_zero);
    return floats_of(_mm256_blendv_epi8(numbers, nan_bits, is_nan));
  } else {
    const __m256i magnitude = _mm256_and_si256(codes, all(0x7f));
    const __m256i sign = _mm256_slli_epi32(_mm256_sub_epi32(codes, magnitude), 24);
    const __m256i value = widen_magnitude<from>(magnitude);
    const __m256i number = _mm256_or_si256(value, sign);
    if constexpr (kSpecials == Specials::kFn) {
      const __m256i is_nan = _mm256_cmpeq_epi32(magnitude, all(0x7f));
      return floats_of(_mm256_blendv_epi8(number, _mm256_or_si256(nan_bits, sign), is_nan));
    } else {
      static_assert(kSpecials == Specials::kFnuz);
      const __m256i is_nan = _mm256_cmpeq_epi32(codes, all(0x80));
      return floats_of(_mm256_blendv_epi8(number, _mm256_or_si256(nan_bits, sign), is_nan));
    }
  }
}

// The same of types whose exponent is not longer than that of float16: its bits, which the processor widens.
template <Dtype from>
TILEWORK_INLINE __m256 decode_by_float16(const uint8_t* at) {
  const __m128i codes = _mm_cvtepu8_epi16(load8(at));
  if constexpr (from == Dtype::kFloat8E5m2) {
    return _mm256_cvtph_ps(_mm_slli_epi16(codes, 8));
  } else {
    constexpr int kShift = 10 - Fields<from>::kMantissa;
    const __m128i sign = _mm_and_si128(codes, _mm_set1_epi16(0x80));
    const __m128i magnitude = _mm_sub_epi16(codes, sign);
    const __m128i moved = _mm_or_si128(_mm_slli_epi16(magnitude, kShift), _mm_slli_epi16(sign, 8));
    constexpr bool kIsFn = Fields<from>::kSpecials == Specials::kFn;
    const __m128i is_nan = kIsFn ? _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7f))
                                 : _mm_cmpeq_epi16(codes, _mm_set1_epi16(0x80));
    const __m128i nan = _mm_or_si128(_mm_set1_epi16(0x7e00), _mm_slli_epi16(sign, 8));
    const __m128i half = _mm_blendv_epi8(moved, nan, is_nan);
    // The exponent meant less than it does in float16.
    constexpr float kScale = 1 << (15 - Fields<from>::kBias);
    return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(kScale));
  }
}

TILEWORK_INLINE __m256 decode_bfloat16(__m256i codes) {
  const __m256i bits = _mm256_slli_epi32(codes, 16);
  const __m256i magnitude = _mm256_and_si256(bits, all(0x7fffffff));
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, all(0x7f800000));
  return floats_of(_mm256_or_si256(bits, _mm256_and_si256(is_nan, all(0x400000))));
}

// 32 codes of float4: the two upper bytes of their values are looked up.
TILEWORK_INLINE Block decode_float4(const uint8_t* at) {
  const __m256i codes = unpack_nibbles(at);
  const __m256i upper = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40, char(0x80), char(0xbf), char(0xbf),
                    char(0xbf), char(0xc0), char(0xc0), char(0xc0), char(0xc0)));
  const __m256i lower = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 0, char(0x80), char(0xc0), 0, 0x40, char(0x80), char(0xc0), 0, 0, char(0x80),
                    char(0xc0), 0, 0x40, char(0x80), char(0xc0)));
  const __m256i high = _mm256_shuffle_epi8(upper, codes);
  const __m256i low = _mm256_shuffle_epi8(lower, codes);
  const __m256i first = _mm256_unpacklo_epi8(low, high);
  const __m256i second = _mm256_unpackhi_epi8(low, high);
  const auto widen = [](__m128i halves) {
    return floats_of(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  };
  return {{widen(_mm256_castsi256_si128(first)), widen(_mm256_castsi256_si128(second)),
           widen(_mm256_extracti128_si256(first, 1)), widen(_mm256_extracti128_si256(second, 1))}};
}

TILEWORK_INLINE Block float_block(__m256i bytes, bool is_signed) {
  Block block;
  const __m128i halves[2] = {_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)};
  for (int i = 0; i < 4; ++i) {
    const __m128i part = i % 2 == 0 ? halves[i / 2] : _mm_srli_si128(halves[i / 2], 8);
    block.lanes[i] = _mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(part) : _mm256_cvtepu8_epi32(part));
  }
  return block;
}

// Eight elements, each of whole bytes.
template <Dtype from>
TILEWORK_INLINE __m256 load_lanes(const uint8_t* at) {
  if constexpr (from == Dtype::kFloat32) return floats_of(load32(at));
  if constexpr (from == Dtype::kFloat16) return _mm256_cvtph_ps(load16(at));
  if constexpr (from == Dtype::kBfloat16) return decode_bfloat16(_mm256_cvtepu16_epi32(load16(at)));
  if constexpr (from == Dtype::kInt8) return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load8(at)));
  if constexpr (from == Dtype::kUint8) return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load8(at)));
  if constexpr (from == Dtype::kInt16) return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(load16(at)));
  if constexpr (from == Dtype::kUint16) return _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(load16(at)));
  if constexpr (from == Dtype::kFloat8E4m3fn || from == Dtype::kFloat8E4m3fnuz ||
                from == Dtype::kFloat8E5m2) {
    return decode_by_float16<from>(at);
  }
  if constexpr (from == Dtype::kFloat8E5m2fnuz || from == Dtype::kFloat8E8m0fnu) {
    return decode_float8<from>(_mm256_cvtepu8_epi32(load8(at)));
  }
}

template <Dtype dtype>
constexpr int64_t kElementBits = [] {
#define TILEWORK_DTYPE(enumerator, name, bits, kind, mantissa_bits, bias, specials) \
  if (dtype == Dtype::enumerator) return bits;
#include "dtype/dtypes.def"
#undef TILEWORK_DTYPE
}();

template <Dtype from>
TILEWORK_INLINE Block load_block(const uint8_t* at) {
  if constexpr (from == Dtype::kFloat4E2m1fn) return decode_float4(at);
  if constexpr (from == Dtype::kUint4) return float_block(unpack_nibbles(at), false);
  if constexpr (from == Dtype::kInt4) return float_block(extend_signs(unpack_nibbles(at)), true);
  if constexpr (kElementBits<from> >= 8) {
    Block block;
    for (int i = 0; i < 4; ++i) block.lanes[i] = load_lanes<from>(at + i * kElementBits<from>);
    return block;
  }
}

// To nearest even by the carry of an addition; NaN would be carried away, so it is put in its place.
TILEWORK_INLINE __m256i encode_bfloat16(__m256 value) {
  const __m256i bits = bits_of(value);
  const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), all(1));
  const __m256i carried = _mm256_add_epi32(_mm256_add_epi32(bits, all(0x7fff)), even);
  const __m256i rounded = _mm256_srli_epi32(carried, 16);
  const __m256i nan = _mm256_or_si256(_mm256_srli_epi32(bits, 31 - 15), all(0x7fc0));
  const __m256i canonical = _mm256_and_si256(nan, all(0xffc0));
  const __m256i is_nan = bits_of(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, canonical, is_nan);
}

// The magnitudes of eight codes. Adding a power of two that leaves as many bits behind the point as the code
// has makes the adder round, subnormals included: their power is that of the least normal number.
template <Dtype to>
TILEWORK_INLINE __m256i round_magnitude(__m256 value, bool saturate, int nan_code) {
  using F = Fields<to>;
  constexpr int kShift = 23 - F::kMantissa;
  constexpr int kBits = to == Dtype::kFloat4E2m1fn ? 4 : 8;
  constexpr int kAllOnes = (1 << (kBits - 1)) - 1;
  constexpr int kLimit = F::kSpecials == Specials::kIeee ? kAllOnes - (1 << F::kMantissa)
                         : F::kSpecials == Specials::kFn ? kAllOnes - 1
                                                         : kAllOnes;
  constexpr int kLeastExponent = 127 + 1 - F::kBias;
  // A power of two beyond all numbers of the type: rounding it needs no more exponent than there is.
  constexpr int kBeyond = (kLeastExponent + (kLimit >> F::kMantissa) + 1) << 23;
  const __m256i magnitude = _mm256_and_si256(bits_of(value), all(0x7fffffff));
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, all(0x7f800000));
  const __m256i bounded = _mm256_min_epi32(magnitude, all(kBeyond));
  const __m256i exponent =
      _mm256_max_epi32(_mm256_and_si256(bounded, all(0x7f800000)), all(kLeastExponent << 23));
  const __m256i power = _mm256_add_epi32(exponent, all(kShift << 23));
  const __m256i sum = bits_of(_mm256_add_ps(floats_of(bounded), floats_of(power)));
  const __m256i steps = _mm256_sub_epi32(sum, power);
  const __m256i start =
      _mm256_sub_epi32(_mm256_srli_epi32(exponent, kShift), all(kLeastExponent << F::kMantissa));
  const __m256i code = _mm256_add_epi32(start, steps);
  // One past the limit stands for what is beyond in every type that has it.
  const __m256i capped = _mm256_min_epi32(code, all(saturate ? kLimit : kLimit + 1));
  return _mm256_blendv_epi8(capped, all(nan_code), is_nan);
}

// 0x80 in the bytes of negative lanes.
TILEWORK_INLINE __m256i sign_bytes(const Block& block) {
  const __m256i low = _mm256_packs_epi32(bits_of(block.lanes[0]), bits_of(block.lanes[1]));
  const __m256i high = _mm256_packs_epi32(bits_of(block.lanes[2]), bits_of(block.lanes[3]));
  const __m256i signs = bytes_in_order(_mm256_packs_epi16(low, high));
  return _mm256_and_si256(signs, _mm256_set1_epi8(char(0x80)));
}

template <Dtype to>
TILEWORK_INLINE __m256i encode_float8(const Block& block, bool saturate) {
  constexpr Specials kSpecials = Fields<to>::kSpecials;
  constexpr int kNaN = kSpecials == Specials::kFnuz ? 0x80 : kSpecials == Specials::kFn ? 0x7f : 0x7e;
  __m256i codes[4];
  for (int i = 0; i < 4; ++i) codes[i] = round_magnitude<to>(block.lanes[i], saturate, kNaN);
  const __m256i magnitude = pack_bytes(codes);
  __m256i sign = sign_bytes(block);
  // 0x80 is NaN there, so zero has no sign.
  if constexpr (kSpecials == Specials::kFnuz) {
    sign = _mm256_andnot_si256(_mm256_cmpeq_epi8(magnitude, _mm256_setzero_si256()), sign);
  }
  return _mm256_or_si256(magnitude, sign);
}

TILEWORK_INLINE __m128i encode_float4(const Block& block, CastMode mode) {
  // NaN is 6; in onnx.reference -0, or 0 where it is negative.
  const bool is_onnx = mode == CastMode::kOnnx;
  __m256i codes[4];
  for (int i = 0; i < 4; ++i) {
    codes[i] = round_magnitude<Dtype::kFloat4E2m1fn>(block.lanes[i], true, is_onnx ? 0x80 : 0x47);
  }
  const __m256i found = pack_bytes(codes);
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi16(sign_bytes(block), 4), _mm256_set1_epi8(8));
  if (is_onnx) {
    const __m256i is_nan = _mm256_cmpeq_epi8(found, _mm256_set1_epi8(char(0x80)));
    return pack_nibbles(
        _mm256_xor_si256(_mm256_or_si256(found, sign), _mm256_and_si256(is_nan, _mm256_set1_epi8(8))));
  }
  const __m256i is_nan = _mm256_cmpeq_epi8(found, _mm256_set1_epi8(0x47));
  return pack_nibbles(_mm256_or_si256(found, _mm256_andnot_si256(is_nan, sign)));
}

// Toward zero; NaN is 0. Numbers beyond what an int32 holds become its least, or `most` where they are
// positive.
TILEWORK_INLINE __m256i truncate(__m256 value, float most) {
  const __m256 number = _mm256_and_ps(value, _mm256_cmp_ps(value, value, _CMP_ORD_Q));
  return _mm256_cvttps_epi32(_mm256_min_ps(number, _mm256_set1_ps(most)));
}

TILEWORK_INLINE __m256i truncate_to_int32(__m256 value) {
  const __m256 number = _mm256_and_ps(value, _mm256_cmp_ps(value, value, _CMP_ORD_Q));
  const __m256i is_beyond = bits_of(_mm256_cmp_ps(number, _mm256_set1_ps(2147483648.0f), _CMP_GE_OQ));
  // The least int32, which the processor gives for what is beyond, becomes the largest.
  return _mm256_xor_si256(_mm256_cvttps_epi32(number), is_beyond);
}

template <Dtype to>
TILEWORK_INLINE __m256i encode_bytes(const Block& block) {
  __m256i whole[4];
  for (int i = 0; i < 4; ++i) whole[i] = truncate(block.lanes[i], to == Dtype::kInt8 ? 127 : 255);
  const __m256i low = _mm256_packs_epi32(whole[0], whole[1]);
  const __m256i high = _mm256_packs_epi32(whole[2], whole[3]);
  const __m256i bytes = to == Dtype::kInt8 ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  return bytes_in_order(bytes);
}

template <Dtype to>
TILEWORK_INLINE __m256i encode_words(__m256 first, __m256 second) {
  if constexpr (to == Dtype::kBfloat16) {
    return in_order(_mm256_packus_epi32(encode_bfloat16(first), encode_bfloat16(second)));
  }
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

// The low 4 bits of the integer nearest to each lane. Beyond an int32, where the processor gives its least
// number, and for NaN they are 0, as they are of any float that large.
TILEWORK_INLINE __m128i encode_nibbles(const Block& block, CastMode mode) {
  __m256i whole[4];
  for (int i = 0; i < 4; ++i) {
    const __m256i integer =
        mode == CastMode::kSpec ? _mm256_cvtps_epi32(block.lanes[i]) : _mm256_cvttps_epi32(block.lanes[i]);
    whole[i] = _mm256_and_si256(integer, all(15));
  }
  return pack_nibbles(pack_bytes(whole));
}

TILEWORK_INLINE __m256i encode_bools(const Block& block) {
  __m256i truth[4];
  for (int i = 0; i < 4; ++i) {
    truth[i] =
        _mm256_srli_epi32(bits_of(_mm256_cmp_ps(block.lanes[i], _mm256_setzero_ps(), _CMP_NEQ_UQ)), 31);
  }
  return pack_bytes(truth);
}

template <Dtype to>
TILEWORK_INLINE void store_block(uint8_t* at, const Block& block, const CastOptions& options) {
  if constexpr (to == Dtype::kFloat32) {
    for (int i = 0; i < 4; ++i) store32(at + 32 * i, bits_of(block.lanes[i]));
  } else if constexpr (to == Dtype::kInt32) {
    for (int i = 0; i < 4; ++i) store32(at + 32 * i, truncate_to_int32(block.lanes[i]));
  } else if constexpr (kElementBits<to> == 16) {
    store32(at, encode_words<to>(block.lanes[0], block.lanes[1]));
    store32(at + 32, encode_words<to>(block.lanes[2], block.lanes[3]));
  } else if constexpr (to == Dtype::kInt8 || to == Dtype::kUint8) {
    store32(at, encode_bytes<to>(block));
  } else if constexpr (to == Dtype::kBool) {
    store32(at, encode_bools(block));
  } else if constexpr (to == Dtype::kFloat4E2m1fn) {
    store16(at, encode_float4(block, options.mode));
  } else if constexpr (to == Dtype::kInt4 || to == Dtype::kUint4) {
    store16(at, encode_nibbles(block, options.mode));
  } else {
    store32(at, encode_float8<to>(block, options.saturate));
  }
}

template <Dtype from, Dtype to>
TILEWORK_INLINE void cast_block(const uint8_t* source, uint8_t* destination, const CastOptions& options) {
  if constexpr (from == Dtype::kInt4 && to == Dtype::kInt8) {
    store32(destination, extend_signs(unpack_nibbles(source)));
  } else if constexpr (from == Dtype::kUint4 && to == Dtype::kUint8) {
    store32(destination, unpack_nibbles(source));
  } else if constexpr ((from == Dtype::kInt8 && to == Dtype::kInt4) ||
                       (from == Dtype::kUint8 && to == Dtype::kUint4)) {
    store16(destination, pack_nibbles(load32(source)));
  } else {
    store_block<to>(destination, load_block<from>(source), options);
  }
}

template <Dtype from, Dtype to>
void cast_by_blocks(const CastArguments& arguments) {
  constexpr int64_t kSourceBytes = kBlock * kElementBits<from> / 8;
  constexpr int64_t kDestinationBytes = kBlock * kElementBits<to> / 8;
  // A copy, which no store can change.
  const CastOptions options = arguments.options;
  const uint8_t* source = arguments.source;
  uint8_t* destination = arguments.destination;
  int64_t left = arguments.count;
  for (; left >= kBlock; left -= kBlock) {
    cast_block<from, to>(source, destination, options);
    source += kSourceBytes;
    destination += kDestinationBytes;
  }
  if (left == 0) return;
  alignas(32) uint8_t padded[kSourceBytes] = {};
  alignas(32) uint8_t result[kDestinationBytes];
  std::memcpy(padded, source, static_cast<size_t>((left * kElementBits<from> + 7) / 8));
  cast_block<from, to>(padded, result, options);
  const int64_t bytes = (left * kElementBits<to> + 7) / 8;
  // The other half of the last byte belongs to no element.
  if (kElementBits<to> == 4 && left % 2 == 1) result[bytes - 1] &= 15;
  std::memcpy(destination, result, static_cast<size_t>(bytes));
}

// Whether what the compiler makes of a plain loop is as good.
template <Dtype from, Dtype to, CastRounding rounding>
constexpr bool kIsPlain = [] {
  constexpr auto is_number = [](Dtype dtype) {
    return (dtype >= Dtype::kInt8 && dtype <= Dtype::kBool) || dtype == Dtype::kFloat32 ||
           dtype == Dtype::kFloat64;
  };
  constexpr bool is_by_float32 =
      (from == Dtype::kFloat32 && kElementBits<to> <= 32 && to != Dtype::kUint32) ||
      (to == Dtype::kFloat32 && kElementBits<from> <= 16);
  return is_number(from) && is_number(to) && (rounding == CastRounding::kOdd || !is_by_float32);
}();

}  // namespace

template <Dtype from, Dtype to, CastRounding rounding>
void cast_avx2(const CastArguments& arguments) {
  if constexpr (kIsPlain<from, to, rounding>) {
    cast_numbers<rounding, typename NumberOf<from>::Type, typename NumberOf<to>::Type>(arguments);
  } else {
    cast_by_blocks<from, to>(arguments);
  }
}

#define TILEWORK_INSTANTIATE_kAvx2(from, to, rounding) \
  template void cast_avx2<Dtype::from, Dtype::to, CastRounding::rounding>(const CastArguments&);
#define TILEWORK_INSTANTIATE_kBaseline(from, to, rounding)
#define TILEWORK_CAST_KERNEL(from, to, isa, rounding) TILEWORK_INSTANTIATE_##isa(from, to, rounding)
#include "dtype/casts.def"
#undef TILEWORK_CAST_KERNEL

}  // namespace tilework
