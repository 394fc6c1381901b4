// Casts with AVX2, F16C and FMA. Only this file is compiled for them. So it must not be entered on another
// CPU, and must define nothing that other files could link to: everything but the kernels has internal
// linkage.
//
// Values that are exact in float32 pass through four registers of eight float32 lanes. Loops that the
// compiler vectorises as well by itself are in cast_numbers.h.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <limits>

#include "dtype/cast_blocks.h"
#include "dtype/cast_numbers.h"
#include "dtype/casts.h"
#include "dtype/lanes_avx2.h"

namespace tilework {
namespace {

// Elements per block: 32 byte codes fill a register.
constexpr int64_t kBlock = 32;
// Blocks that some kernels test at once for special values (see kIsTogether).
constexpr int64_t kBlocksTogether = 4;

// Packs lanes between 0 and 255.
TILEWORK_INLINE __m256i pack_bytes(const __m256i (&lanes)[4]) {
  const __m256i low = _mm256_packus_epi32(lanes[0], lanes[1]);
  const __m256i high = _mm256_packus_epi32(lanes[2], lanes[3]);
  return bytes_in_order(_mm256_packus_epi16(low, high));
}

// Packs pairs of bytes with 4 bits each into one byte; the first byte becomes the low half.
TILEWORK_INLINE __m128i pack_nibbles(__m256i bytes) {
  const __m256i masked = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
  // low * 1 + high * 16 of each pair.
  const __m256i pairs = _mm256_maddubs_epi16(masked, _mm256_set1_epi16(0x1001));
  return _mm256_castsi256_si128(in_order(_mm256_packus_epi16(pairs, pairs)));
}

// Splits the byte of each 16-bit lane into two bytes of 4 bits each.
TILEWORK_INLINE __m256i split_nibbles(__m256i pairs) {
  const __m256i high = _mm256_slli_epi16(pairs, 4);
  return _mm256_and_si256(_mm256_or_si256(pairs, high), _mm256_set1_epi8(15));
}

// Packs 32 bytes below 16 that are in pack order: groups of four of each register.
TILEWORK_INLINE __m128i pack_nibbles_in_order(__m256i packed) {
  const __m256i pairs = _mm256_maddubs_epi16(packed, _mm256_set1_epi16(0x1001));
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  return _mm_shuffle_epi8(bytes, _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
}

// Unpacks 16 bytes to 32 bytes of 4 bits each.
TILEWORK_INLINE __m256i unpack_nibbles(const uint8_t* at) {
  return split_nibbles(_mm256_cvtepu8_epi16(load16(at)));
}

// Packs four bytes with 2 bits each into one; the first byte becomes the lowest bits.
TILEWORK_INLINE void store_crumbs(uint8_t* at, __m256i bytes) {
  const __m256i masked = _mm256_and_si256(bytes, _mm256_set1_epi8(3));
  const __m256i pairs = _mm256_maddubs_epi16(masked, _mm256_set1_epi16(0x0401));
  const __m256i fours = _mm256_madd_epi16(pairs, all(0x00100001));
  const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(at), _mm_packus_epi16(packed, packed));
}

// Unpacks 8 bytes to 32 bytes of 2 bits each.
TILEWORK_INLINE __m256i unpack_crumbs(const uint8_t* at) {
  const __m256i fours = _mm256_cvtepu8_epi32(load8(at));
  const __m256i pairs = _mm256_or_si256(fours, _mm256_slli_epi32(fours, 12));
  return _mm256_and_si256(_mm256_or_si256(pairs, _mm256_slli_epi32(pairs, 6)), _mm256_set1_epi8(3));
}

// Sign-extends 32 integers of kBits bits to bytes.
template <int kBits>
TILEWORK_INLINE __m256i extend_signs(__m256i integers) {
  const __m256i sign = _mm256_set1_epi8(1 << (kBits - 1));
  return _mm256_sub_epi8(_mm256_xor_si256(integers, sign), sign);
}

// Bit fields of a float type.
template <Dtype dtype>
struct Fields;
#define TILEWORK_FIELDS(name, mantissa, exponent_bias, kind) \
  template <>                                                \
  struct Fields<Dtype::name> {                               \
    static constexpr int kMantissa = mantissa;               \
    static constexpr int kBias = exponent_bias;              \
    static constexpr Specials kSpecials = Specials::kind;    \
  };
#define TILEWORK_DTYPE(enumerator, name, bits, kind, mantissa_bits, bias, specials, dlpack_code) \
  TILEWORK_FIELDS(enumerator, mantissa_bits, bias, specials)
#include "facts/dtypes.def"
#undef TILEWORK_DTYPE
#undef TILEWORK_FIELDS

// Widens 16 float16 to two registers of float32.
TILEWORK_INLINE void widen_halves(__m256i halves, float scale, __m256* lanes) {
  lanes[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
  lanes[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
  if (scale == 1) return;
  for (int i = 0; i < 2; ++i) lanes[i] = _mm256_mul_ps(lanes[i], _mm256_set1_ps(scale));
}

// Moves 16 codes to the bit positions of float16; the values differ only by a power of two. Keeps the sign
// and extends a shorter exponent with zeros.
template <Dtype from>
TILEWORK_INLINE __m256i float16_bits(__m128i codes) {
  constexpr int kShift = 10 - Fields<from>::kMantissa;
  const __m256i moved = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), kShift);
  if constexpr (kShift == 8) return moved;
  return _mm256_and_si256(moved, _mm256_set1_epi16(static_cast<int16_t>(0xbf80)));
}

// Difference of the exponent biases of float16 and the type.
template <Dtype from>
constexpr float kFloat16Scale = [] {
  constexpr int kMore = 15 - Fields<from>::kBias;
  return kMore >= 0 ? static_cast<float>(1 << (kMore >= 0 ? kMore : 0)) : 0.5f;
}();

// Decodes 16 codes of e4m3, NaN included.
template <Dtype from>
TILEWORK_INLINE void decode_e4m3_or_nan(__m128i codes, __m256* lanes) {
  constexpr bool kIsFn = Fields<from>::kSpecials == Specials::kFn;
  const __m128i special = kIsFn ? _mm_and_si128(codes, _mm_set1_epi8(0x7f)) : codes;
  const __m128i is_nan = _mm_cmpeq_epi8(special, _mm_set1_epi8(static_cast<char>(kIsFn ? 0x7f : 0x80)));
  // Changes what the NaN code became to the quiet NaN of float16.
  const __m256i change =
      _mm256_and_si256(_mm256_cvtepi8_epi16(is_nan), _mm256_set1_epi16(kIsFn ? 0x4180 : 0x7e00));
  widen_halves(_mm256_xor_si256(float16_bits<from>(codes), change), kFloat16Scale<from>, lanes);
}

// Decodes 16 codes of e5m2fnuz through the upper halves of float32, since float16 reserves the largest
// exponent for infinities. The three subnormals come from a table.
TILEWORK_INLINE void decode_e5m2fnuz(__m128i bytes, __m256* lanes) {
  const __m256i codes = _mm256_cvtepu8_epi16(bytes);
  const __m256i sign = _mm256_slli_epi16(_mm256_srli_epi16(codes, 7), 15);
  const __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi16(0x7f));
  const __m256i normal =
      _mm256_add_epi16(_mm256_slli_epi16(magnitude, 5), _mm256_set1_epi16((127 - 16) << 7));
  // 2^-17, 2^-16 and 1.5 * 2^-16. The upper byte of a lane looks up 0 and gives the low byte's entry of the
  // second table.
  const __m256i low = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 0, char(0x80), char(0xc0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  const __m256i high =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0x37, 0x37, 0x37, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  const __m256i subnormal = _mm256_or_si256(_mm256_shuffle_epi8(low, magnitude),
                                            _mm256_slli_epi16(_mm256_shuffle_epi8(high, magnitude), 8));
  const __m256i is_subnormal = _mm256_cmpgt_epi16(_mm256_set1_epi16(4), magnitude);
  const __m256i number = _mm256_or_si256(_mm256_blendv_epi8(normal, subnormal, is_subnormal), sign);
  const __m256i is_nan = _mm256_cmpeq_epi16(codes, _mm256_set1_epi16(0x80));
  const __m256i upper = _mm256_blendv_epi8(number, _mm256_set1_epi16(static_cast<int16_t>(0xffc0)), is_nan);
  lanes[0] = floats_of(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(upper)), 16));
  lanes[1] = floats_of(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(upper, 1)), 16));
}

// Keeps a signaling NaN; for kernels that replace NaN themselves.
TILEWORK_INLINE __m256 widen_bfloat16(__m256i codes) { return floats_of(_mm256_slli_epi32(codes, 16)); }

// Decodes 32 codes of float4 by looking up the upper two bytes of their values. First spreads the codes so
// that the registers are in order after interleaving bytes and then 16-bit halves, which works per half
// register.
TILEWORK_INLINE Block decode_float4(const uint8_t* at) {
  const __m256i both = _mm256_broadcastsi128_si256(load16(at));
  constexpr char kNone = -1;
  const __m256i pairs =
      _mm256_shuffle_epi8(both, _mm256_setr_epi8(0, kNone, 1, kNone, 4, kNone, 5, kNone, 8, kNone, 9, kNone,
                                                 12, kNone, 13, kNone, 2, kNone, 3, kNone, 6, kNone, 7, kNone,
                                                 10, kNone, 11, kNone, 14, kNone, 15, kNone));
  const __m256i codes = split_nibbles(pairs);
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
  const __m256i zero = _mm256_setzero_si256();
  return {{floats_of(_mm256_unpacklo_epi16(zero, first)), floats_of(_mm256_unpackhi_epi16(zero, first)),
           floats_of(_mm256_unpacklo_epi16(zero, second)), floats_of(_mm256_unpackhi_epi16(zero, second))}};
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

// Marks codes that are NaN, or that differ from the float16 of the same bits by more than a power of two.
template <Dtype from>
TILEWORK_INLINE bool has_special(__m256i codes) {
  const auto is = [&](int mask, int code) {
    return _mm256_cmpeq_epi8(_mm256_and_si256(codes, _mm256_set1_epi8(static_cast<char>(mask))),
                             _mm256_set1_epi8(static_cast<char>(code)));
  };
  if constexpr (from == Dtype::kFloat8E5m2) return false;
  if constexpr (from == Dtype::kFloat8E4m3fn) return _mm256_movemask_epi8(is(0x7f, 0x7f)) != 0;
  if constexpr (from == Dtype::kFloat8E4m3fnuz) return _mm256_movemask_epi8(is(0xff, 0x80)) != 0;
  return _mm256_movemask_epi8(_mm256_or_si256(is(0xff, 0x80), is(0x7c, 0x7c))) != 0;
}

template <Dtype from>
TILEWORK_INLINE Block decode_small_float(__m256i codes) {
  const bool is_special = has_special<from>(codes);
  Block block;
  for (int half = 0; half < 2; ++half) {
    const __m128i here = half == 0 ? _mm256_castsi256_si128(codes) : _mm256_extracti128_si256(codes, 1);
    __m256* lanes = block.lanes + 2 * half;
    if (from == Dtype::kFloat8E5m2 || __builtin_expect(!is_special, 1)) {
      widen_halves(float16_bits<from>(here), kFloat16Scale<from>, lanes);
    } else if constexpr (from == Dtype::kFloat8E5m2fnuz) {
      decode_e5m2fnuz(here, lanes);
    } else {
      decode_e4m3_or_nan<from>(here, lanes);
    }
  }
  return block;
}

// 8-bit types with sign, exponent and mantissa.
template <Dtype dtype>
constexpr bool kIsSmallFloat = dtype == Dtype::kFloat8E4m3fn || dtype == Dtype::kFloat8E4m3fnuz ||
                               dtype == Dtype::kFloat8E5m2 || dtype == Dtype::kFloat8E5m2fnuz;

template <Dtype from>
TILEWORK_INLINE Block load_block(const uint8_t* at) {
  if constexpr (from == Dtype::kFloat4E2m1fn) return decode_float4(at);
  if constexpr (from == Dtype::kUint4) return float_block(unpack_nibbles(at), false);
  if constexpr (from == Dtype::kInt4) return float_block(extend_signs<4>(unpack_nibbles(at)), true);
  if constexpr (kIsSmallFloat<from>) {
    return decode_small_float<from>(load32(at));
  } else if constexpr (kElementBits<from> >= 8) {
    Block block;
    for (int i = 0; i < 4; ++i)
      block.lanes[i] = load_lanes<from, kElementBits<from>>(at + i * kElementBits<from>);
    return block;
  }
}

// Real data rarely has NaN, infinities or values that are out of range. Kernels test once per block, or once
// for several blocks, and take a slower path if there are any.
TILEWORK_INLINE bool has_nan(const Block& block) {
  const __m256 first = _mm256_cmp_ps(block.lanes[0], block.lanes[1], _CMP_UNORD_Q);
  const __m256 second = _mm256_cmp_ps(block.lanes[2], block.lanes[3], _CMP_UNORD_Q);
  return _mm256_movemask_ps(_mm256_or_ps(first, second)) != 0;
}

TILEWORK_INLINE void store_bfloat16(uint8_t* at, const Block& block) {
  __m256i rounded[4];
  if (__builtin_expect(has_nan(block), 0)) {
    for (int i = 0; i < 4; ++i) rounded[i] = round_bfloat16_or_nan(block.lanes[i]);
  } else {
    for (int i = 0; i < 4; ++i) rounded[i] = round_bfloat16(bits_of(block.lanes[i]));
  }
  store32(at, upper_halves(rounded[0], rounded[1]));
  store32(at + 32, upper_halves(rounded[2], rounded[3]));
}

// Code of the largest finite value of a type.
template <Dtype to>
constexpr int kLimit = [] {
  constexpr int kAllOnes = to == Dtype::kFloat4E2m1fn ? 7 : 127;
  constexpr Specials kSpecials = Fields<to>::kSpecials;
  if (kSpecials == Specials::kIeee) return kAllOnes - (1 << Fields<to>::kMantissa);
  return kSpecials == Specials::kFn ? kAllOnes - 1 : kAllOnes;
}();

// Magnitudes of eight codes. Adding a power of two that leaves as many fraction bits as the code has makes
// the adder round. Subnormals use the power of the smallest normal number.
template <Dtype to>
TILEWORK_INLINE __m256i round_magnitude(__m256 value, bool saturate, int nan_code) {
  using F = Fields<to>;
  constexpr int kShift = 23 - F::kMantissa;
  constexpr int kMinExponent = 127 + 1 - F::kBias;
  constexpr int kMost = kLimit<to>;
  // A power of two above all values of the type: larger exponents need not be rounded.
  constexpr int kBeyond = (kMinExponent + (kMost >> F::kMantissa) + 1) << 23;
  const __m256i magnitude = _mm256_and_si256(bits_of(value), all(0x7fffffff));
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, all(0x7f800000));
  const __m256i bounded = _mm256_min_epi32(magnitude, all(kBeyond));
  const __m256i exponent =
      _mm256_max_epi32(_mm256_and_si256(bounded, all(0x7f800000)), all(kMinExponent << 23));
  const __m256i power = _mm256_add_epi32(exponent, all(kShift << 23));
  const __m256i sum = bits_of(_mm256_add_ps(floats_of(bounded), floats_of(power)));
  const __m256i steps = _mm256_sub_epi32(sum, power);
  const __m256i start =
      _mm256_sub_epi32(_mm256_srli_epi32(exponent, kShift), all(kMinExponent << F::kMantissa));
  const __m256i code = _mm256_add_epi32(start, steps);
  // One past the limit means overflow in every type that has it.
  const __m256i capped = _mm256_min_epi32(code, all(kMost + (saturate ? 0 : 1)));
  return _mm256_blendv_epi8(capped, all(nan_code), is_nan);
}

// 0x80 in the bytes of negative lanes, in pack order.
TILEWORK_INLINE __m256i packed_signs(const Block& block) {
  const __m256i low = _mm256_packs_epi32(bits_of(block.lanes[0]), bits_of(block.lanes[1]));
  const __m256i high = _mm256_packs_epi32(bits_of(block.lanes[2]), bits_of(block.lanes[3]));
  return _mm256_and_si256(_mm256_packs_epi16(low, high), _mm256_set1_epi8(char(0x80)));
}

// 8 in the bytes of negative lanes, in pack order.
TILEWORK_INLINE __m256i nibble_signs(const Block& block) { return _mm256_srli_epi16(packed_signs(block), 4); }

template <Dtype to>
TILEWORK_INLINE __m256i with_signs(__m256i magnitudes, __m256i signs) {
  // There 0x80 is NaN, so zero has no sign; the code of NaN is 0x80 itself.
  if constexpr (Fields<to>::kSpecials == Specials::kFnuz) signs = _mm256_sign_epi8(signs, magnitudes);
  return _mm256_or_si256(magnitudes, signs);
}

template <Dtype to>
TILEWORK_INLINE __m256i encode_float8_or_nan(const Block& block, bool saturate) {
  constexpr Specials kSpecials = Fields<to>::kSpecials;
  constexpr int kNaN = kSpecials == Specials::kFnuz ? 0x80 : kSpecials == Specials::kFn ? 0x7f : 0x7e;
  __m256i codes[4];
  for (int i = 0; i < 4; ++i) codes[i] = round_magnitude<to>(block.lanes[i], saturate, kNaN);
  return with_signs<to>(pack_bytes(codes), bytes_in_order(packed_signs(block)));
}

// Codes of 32 lanes without NaN, without signs and in pack order. Adding a power of two that leaves as many
// fraction bits as the code has rounds the lane. The upper half of the sum has the exponent of that power and
// the lower half the steps from there. One 16-bit multiplication shifts both together into the code. The
// power includes a constant that makes the lower half start below 0 by what the upper half has too much; the
// constant is even, since the last bit decides ties. An infinite sum gives a code above the limit too.
// `has_nan` becomes NaN if a lane is NaN: all sums exceed 1, so nothing else produces one.
template <Dtype to>
TILEWORK_INLINE __m256i round_magnitudes(const Block& block, bool saturate, __m256* has_nan) {
  using F = Fields<to>;
  constexpr int kShift = 23 - F::kMantissa;
  constexpr int kMinExponent = 127 + 1 - F::kBias;
  constexpr int kCodeShift = 7 - F::kMantissa;
  constexpr int kStart = (kMinExponent + kShift) << F::kMantissa;
  static_assert(kStart % 2 == 0 && kStart < 1 << 15);
  constexpr float kPower = static_cast<float>((1 << 23) + (1 << kShift) - kStart) / (1 << F::kMantissa);
  const __m256i halves = all((1 << 16) + (1 << kCodeShift));
  __m256 sums[4];
  __m256i codes[4];
  for (int i = 0; i < 4; ++i) {
    const __m256i magnitude = _mm256_and_si256(bits_of(block.lanes[i]), all(0x7fffffff));
    const __m256i exponent =
        _mm256_max_epi32(_mm256_and_si256(magnitude, all(0x7f800000)), all(kMinExponent << 23));
    sums[i] = _mm256_fmadd_ps(floats_of(exponent), _mm256_set1_ps(kPower), floats_of(magnitude));
    codes[i] = _mm256_madd_epi16(bits_of(sums[i]), halves);
  }
  *has_nan = _mm256_fmadd_ps(_mm256_fmadd_ps(sums[0], sums[1], sums[2]), sums[3], *has_nan);
  const __m256i low = _mm256_srli_epi16(_mm256_packus_epi32(codes[0], codes[1]), kCodeShift);
  const __m256i high = _mm256_srli_epi16(_mm256_packus_epi32(codes[2], codes[3]), kCodeShift);
  // One past the limit means overflow in every type that has it.
  return _mm256_min_epu8(_mm256_packus_epi16(low, high),
                         _mm256_set1_epi8(static_cast<char>(kLimit<to> + (saturate ? 0 : 1))));
}

TILEWORK_INLINE bool is_any_nan(__m256 value) {
  return _mm256_movemask_ps(_mm256_cmp_ps(value, value, _CMP_UNORD_Q)) != 0;
}

// As round_magnitudes, with signs and in order.
template <Dtype to>
TILEWORK_INLINE __m256i encode_float8_number(const Block& block, bool saturate, __m256* has_nan) {
  return bytes_in_order(with_signs<to>(round_magnitudes<to>(block, saturate, has_nan), packed_signs(block)));
}

template <Dtype to>
TILEWORK_INLINE __m256i encode_float8(const Block& block, bool saturate) {
  __m256 has_nan = _mm256_setzero_ps();
  const __m256i codes = encode_float8_number<to>(block, saturate, &has_nan);
  if (__builtin_expect(is_any_nan(has_nan), 0)) return encode_float8_or_nan<to>(block, saturate);
  return codes;
}

TILEWORK_INLINE __m128i encode_float4_or_nan(const Block& block, CastMode mode) {
  // NaN becomes 6; in onnx.reference -0, or 0 for a negative NaN.
  const bool is_onnx = mode == CastMode::kOnnx;
  __m256i codes[4];
  for (int i = 0; i < 4; ++i) {
    codes[i] = round_magnitude<Dtype::kFloat4E2m1fn>(block.lanes[i], true, is_onnx ? 0x80 : 0x47);
  }
  const __m256i found = pack_bytes(codes);
  const __m256i sign = bytes_in_order(nibble_signs(block));
  if (is_onnx) {
    const __m256i is_nan = _mm256_cmpeq_epi8(found, _mm256_set1_epi8(char(0x80)));
    return pack_nibbles(
        _mm256_xor_si256(_mm256_or_si256(found, sign), _mm256_and_si256(is_nan, _mm256_set1_epi8(8))));
  }
  const __m256i is_nan = _mm256_cmpeq_epi8(found, _mm256_set1_epi8(0x47));
  return pack_nibbles(_mm256_or_si256(found, _mm256_andnot_si256(is_nan, sign)));
}

TILEWORK_INLINE __m128i encode_float4_number(const Block& block, __m256* has_nan) {
  const __m256i magnitudes = round_magnitudes<Dtype::kFloat4E2m1fn>(block, true, has_nan);
  return pack_nibbles_in_order(_mm256_or_si256(magnitudes, nibble_signs(block)));
}

TILEWORK_INLINE __m128i encode_float4(const Block& block, CastMode mode) {
  __m256 has_nan = _mm256_setzero_ps();
  const __m128i codes = encode_float4_number(block, &has_nan);
  if (__builtin_expect(is_any_nan(has_nan), 0)) return encode_float4_or_nan(block, mode);
  return codes;
}

TILEWORK_INLINE __m256i truncate_to_int32(__m256 value) {
  const __m256 number = _mm256_and_ps(value, _mm256_cmp_ps(value, value, _CMP_ORD_Q));
  const __m256i is_beyond = bits_of(_mm256_cmp_ps(number, _mm256_set1_ps(2147483648.0f), _CMP_GE_OQ));
  // The conversion gives the smallest int32 for values that do not fit; the xor makes it the largest.
  return _mm256_xor_si256(_mm256_cvttps_epi32(number), is_beyond);
}

// Low bits of the integer nearest to each lane, as bytes. NaN and values that do not fit an int32 give 0,
// like every float that large.
TILEWORK_INLINE __m256i encode_low_bits(const Block& block, CastMode mode) {
  __m256i whole[4];
  for (int i = 0; i < 4; ++i) {
    const __m256i integer =
        mode == CastMode::kSpec ? _mm256_cvtps_epi32(block.lanes[i]) : _mm256_cvttps_epi32(block.lanes[i]);
    whole[i] = _mm256_and_si256(integer, all(15));
  }
  return pack_bytes(whole);
}

TILEWORK_INLINE __m256i encode_bools(const Block& block) {
  __m256i truth[4];
  for (int i = 0; i < 4; ++i) {
    truth[i] =
        _mm256_srli_epi32(bits_of(_mm256_cmp_ps(block.lanes[i], _mm256_setzero_ps(), _CMP_NEQ_UQ)), 31);
  }
  return pack_bytes(truth);
}

// Added to the bits of a float32 before its mantissa is cut off.
TILEWORK_INLINE int scale_addend(ScaleRounding round) {
  return round == ScaleRounding::kUp ? 0x7fffff : round == ScaleRounding::kNearest ? 0x400000 : 0;
}

TILEWORK_INLINE __m256i encode_scale(__m256 value, const CastOptions& options) {
  const __m256i bits = bits_of(value);
  const __m256i magnitude = _mm256_and_si256(bits, all(0x7fffffff));
  const __m256i is_zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, all(0x7f800000));
  const __m256i is_negative = _mm256_andnot_si256(is_zero, _mm256_srai_epi32(bits, 31));
  // Gives values between 2^-127 and 2^-126 the mantissa of normal numbers.
  const __m256i doubled = _mm256_sub_epi32(_mm256_slli_epi32(magnitude, 1), all(0x800000));
  const __m256i is_subnormal = _mm256_cmpgt_epi32(all(0x800000), magnitude);
  const __m256i number =
      _mm256_blendv_epi8(magnitude, _mm256_max_epi32(doubled, _mm256_setzero_si256()), is_subnormal);
  const __m256i carried = _mm256_add_epi32(number, all(scale_addend(options.round)));
  const __m256i code = _mm256_min_epi32(_mm256_srli_epi32(carried, 23), all(options.saturate ? 0xfe : 0xff));
  __m256i has_none = _mm256_or_si256(is_nan, is_negative);
  if (!options.saturate) has_none = _mm256_or_si256(has_none, is_zero);
  return _mm256_and_si256(_mm256_or_si256(code, has_none), all(0xff));
}

// As onnx.reference: drops the sign, maps infinities to NaN, and treats mantissas of subnormals like any
// other.
TILEWORK_INLINE __m256i encode_scale_of_onnx(__m256 value, const CastOptions& options) {
  const __m256i magnitude = _mm256_and_si256(bits_of(value), all(0x7fffffff));
  const __m256i has_none = _mm256_cmpgt_epi32(magnitude, all(0x7f7fffff));
  __m256i addend = all(scale_addend(options.round));
  if (options.round == ScaleRounding::kNearest) {
    // A half rounds up only for normal numbers.
    addend = _mm256_add_epi32(addend, _mm256_cmpgt_epi32(all(0x800000), magnitude));
  }
  const __m256i code = _mm256_min_epi32(_mm256_srli_epi32(_mm256_add_epi32(magnitude, addend), 23),
                                        all(options.saturate ? 0xfe : 0xff));
  return _mm256_and_si256(_mm256_or_si256(code, has_none), all(0xff));
}

// Any 32 lanes, special values included.
TILEWORK_INLINE __m256i encode_all_scales(const Block& block, const CastOptions& options) {
  __m256i codes[4];
  for (int i = 0; i < 4; ++i) {
    codes[i] = options.mode == CastMode::kSpec ? encode_scale(block.lanes[i], options)
                                               : encode_scale_of_onnx(block.lanes[i], options);
  }
  return pack_bytes(codes);
}

// For normal numbers the rounded exponent is the code. Other values give codes below 2 or above 254.
TILEWORK_INLINE __m256i encode_scales(const Block& block, const CastOptions& options) {
  const __m256i addend = all(scale_addend(options.round));
  __m256i codes[4];
  for (int i = 0; i < 4; ++i) {
    const __m256i magnitude = _mm256_and_si256(bits_of(block.lanes[i]), all(0x7fffffff));
    codes[i] = _mm256_srli_epi32(_mm256_add_epi32(magnitude, addend), 23);
  }
  const __m256i found =
      _mm256_packus_epi16(_mm256_packus_epi32(codes[0], codes[1]), _mm256_packus_epi32(codes[2], codes[3]));
  const __m256i past_two = _mm256_sub_epi8(found, _mm256_set1_epi8(2));
  const __m256i is_special =
      _mm256_cmpeq_epi8(_mm256_max_epu8(past_two, _mm256_set1_epi8(char(0xff - 2))), past_two);
  if (__builtin_expect(_mm256_movemask_epi8(is_special) != 0, 0)) return encode_all_scales(block, options);
  if (options.mode == CastMode::kOnnx) return bytes_in_order(found);
  const __m256i is_negative = _mm256_cmpgt_epi8(_mm256_setzero_si256(), packed_signs(block));
  return bytes_in_order(_mm256_or_si256(found, is_negative));
}

template <Dtype to>
TILEWORK_INLINE void store_block(uint8_t* at, const Block& block, const CastOptions& options) {
  if constexpr (to == Dtype::kFloat32) {
    for (int i = 0; i < 4; ++i) store32(at + 32 * i, bits_of(block.lanes[i]));
  } else if constexpr (to == Dtype::kInt32) {
    for (int i = 0; i < 4; ++i) store32(at + 32 * i, truncate_to_int32(block.lanes[i]));
  } else if constexpr (to == Dtype::kBfloat16) {
    store_bfloat16(at, block);
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
    store16(at, pack_nibbles(encode_low_bits(block, options.mode)));
  } else if constexpr (to == Dtype::kInt2 || to == Dtype::kUint2) {
    store_crumbs(at, encode_low_bits(block, options.mode));
  } else if constexpr (to == Dtype::kFloat8E8m0fnu) {
    store32(at, encode_scales(block, options));
  } else {
    store32(at, encode_float8<to>(block, options.saturate));
  }
}

// Rounds eight float64 toward zero to int32 within two limits; NaN gives 0.
TILEWORK_INLINE __m256i truncate_doubles(const uint8_t* at, double min, double max) {
  __m128i halves[2];
  for (int i = 0; i < 2; ++i) {
    const __m256d value = _mm256_loadu_pd(reinterpret_cast<const double*>(at + 32 * i));
    const __m256d number = _mm256_and_pd(value, _mm256_cmp_pd(value, value, _CMP_ORD_Q));
    const __m256d bounded = _mm256_min_pd(_mm256_max_pd(number, _mm256_set1_pd(min)), _mm256_set1_pd(max));
    halves[i] = _mm256_cvttpd_epi32(bounded);
  }
  return _mm256_set_m128i(halves[1], halves[0]);
}

// Low 4 bits of the integers nearest to eight float64 of any size; 0 for NaN and infinities.
TILEWORK_INLINE __m256i low_bits_of_doubles(const uint8_t* at, CastMode mode) {
  __m128i halves[2];
  for (int i = 0; i < 2; ++i) {
    const __m256d value = _mm256_loadu_pd(reinterpret_cast<const double*>(at + 32 * i));
    const __m256d whole = mode == CastMode::kSpec
                              ? _mm256_round_pd(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
                              : _mm256_round_pd(value, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m256d sixteens = _mm256_floor_pd(_mm256_mul_pd(whole, _mm256_set1_pd(1.0 / 16)));
    // Infinity minus infinity is NaN.
    const __m256d remainder = _mm256_sub_pd(whole, _mm256_mul_pd(sixteens, _mm256_set1_pd(16)));
    halves[i] =
        _mm256_cvttpd_epi32(_mm256_and_pd(remainder, _mm256_cmp_pd(remainder, remainder, _CMP_ORD_Q)));
  }
  return _mm256_set_m128i(halves[1], halves[0]);
}

// Converts 32 float64 to lanes for byte results. The conversion gives the smallest int32 for NaN and for
// values that do not fit; the packs saturate it to the smallest int16.
template <Dtype to>
TILEWORK_INLINE __m256i bytes_of_doubles(const uint8_t* at) {
  __m256i whole[4];
  for (int i = 0; i < 4; ++i) {
    const auto half = [&](int k) {
      return _mm256_cvttpd_epi32(_mm256_loadu_pd(reinterpret_cast<const double*>(at + 64 * i + 32 * k)));
    };
    whole[i] = _mm256_set_m128i(half(1), half(0));
  }
  __m256i low = _mm256_packs_epi32(whole[0], whole[1]);
  __m256i high = _mm256_packs_epi32(whole[2], whole[3]);
  const __m256i is_least =
      _mm256_cmpeq_epi16(_mm256_min_epi16(low, high), _mm256_set1_epi16(static_cast<int16_t>(0x8000)));
  if (__builtin_expect(_mm256_movemask_epi8(is_least) != 0, 0)) {
    using Limits = std::numeric_limits<typename NumberOf<to>::Type>;
    for (int i = 0; i < 4; ++i) whole[i] = truncate_doubles(at + 64 * i, Limits::min(), Limits::max());
    low = _mm256_packs_epi32(whole[0], whole[1]);
    high = _mm256_packs_epi32(whole[2], whole[3]);
  }
  return pack_bytes_of<to>(low, high);
}

template <Dtype to>
TILEWORK_INLINE void cast_doubles(const uint8_t* source, uint8_t* destination, const CastOptions& options) {
  constexpr bool kIsByte = to == Dtype::kInt8 || to == Dtype::kUint8;
  constexpr bool kIsWord = to == Dtype::kInt16 || to == Dtype::kUint16;
  if constexpr (kIsByte) return store32(destination, bytes_of_doubles<to>(source));
  __m256i whole[4];
  for (int i = 0; i < 4; ++i) {
    if constexpr (kIsWord || to == Dtype::kInt32) {
      using Limits = std::numeric_limits<typename NumberOf<to>::Type>;
      whole[i] = truncate_doubles(source + 64 * i, Limits::min(), Limits::max());
    } else {
      whole[i] = low_bits_of_doubles(source + 64 * i, options.mode);
    }
  }
  if constexpr (to == Dtype::kInt32) {
    for (int i = 0; i < 4; ++i) store32(destination + 32 * i, whole[i]);
  } else if constexpr (kIsWord) {
    for (int i = 0; i < 2; ++i) {
      const __m256i words = to == Dtype::kInt16 ? _mm256_packs_epi32(whole[2 * i], whole[2 * i + 1])
                                                : _mm256_packus_epi32(whole[2 * i], whole[2 * i + 1]);
      store32(destination + 32 * i, in_order(words));
    }
  } else if constexpr (kElementBits<to> == 4) {
    store16(destination, pack_nibbles(pack_bytes(whole)));
  } else {
    store_crumbs(destination, pack_bytes(whole));
  }
}

// Converts 32 float64 to float32, rounded to odd: at least 20 fraction bits are exact and the last one is set
// if bits were lost. So one more rounding to a narrower float is correct. Subnormal float32 become 0.
TILEWORK_INLINE Block load_odd_doubles(const uint8_t* at) {
  // The last mantissa bit of a float32, as a bit of a float64.
  const __m256i last = _mm256_set1_epi64x(int64_t{1} << 29);
  const auto odd = [&](const uint8_t* from) {
    const __m256i bits = load32(from);
    const __m256i is_zero = _mm256_cmpeq_epi32(bits, _mm256_setzero_si256());
    const __m256i number = _mm256_blend_epi32(bits, _mm256_andnot_si256(is_zero, last), 0x55);
    return _mm256_cvtpd_ps(_mm256_castsi256_pd(number));
  };
  Block block;
  for (int i = 0; i < 4; ++i) block.lanes[i] = _mm256_set_m128(odd(at + 64 * i + 32), odd(at + 64 * i));
  return block;
}

// Converts 32 int64. Up to 2^51, adding to the bits of 1.5 * 2^52 makes them float64, which is then rounded
// once.
TILEWORK_INLINE void cast_int64_to_float32(const uint8_t* source, uint8_t* destination) {
  constexpr int64_t kOnes = 0x4338000000000000;
  const __m256i ones = _mm256_set1_epi64x(kOnes);
  const __m256i exponent = _mm256_set1_epi64x(static_cast<int64_t>(0xfff0000000000000));
  __m256i differs = _mm256_setzero_si256();
  __m128 numbers[8];
  for (int i = 0; i < 8; ++i) {
    const __m256i sum = _mm256_add_epi64(load32(source + 32 * i), ones);
    differs = _mm256_or_si256(differs, _mm256_xor_si256(sum, ones));
    numbers[i] = _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_castsi256_pd(sum), _mm256_castsi256_pd(ones)));
  }
  if (__builtin_expect(_mm256_testz_si256(differs, exponent) == 0, 0)) {
    for (int64_t i = 0; i < kBlock; ++i) {
      cast_number<CastRounding::kNearest, int64_t, float>(source, destination, i);
    }
    return;
  }
  for (int i = 0; i < 4; ++i) {
    store32(destination + 32 * i, bits_of(_mm256_set_m128(numbers[2 * i + 1], numbers[2 * i])));
  }
}

// Loads 32 bfloat16 for a kernel that replaces NaN itself.
TILEWORK_INLINE Block load_bfloat16(const uint8_t* at) {
  Block block;
  for (int i = 0; i < 4; ++i) block.lanes[i] = widen_bfloat16(_mm256_cvtepu16_epi32(load16(at + 16 * i)));
  return block;
}

// Converts 32 bfloat16 to float16. Elements at even and odd positions are widened separately, by one shift
// and one mask.
TILEWORK_INLINE void cast_bfloat16_to_float16(const uint8_t* source, uint8_t* destination) {
  for (int i = 0; i < 2; ++i) {
    const __m256i codes = load32(source + 32 * i);
    const auto narrow = [](__m256i bits) {
      return _mm256_cvtps_ph(floats_of(bits), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    };
    const __m128i even = narrow(_mm256_slli_epi32(codes, 16));
    const __m128i odd = narrow(_mm256_and_si256(codes, all(static_cast<int>(0xffff0000))));
    store32(destination + 32 * i,
            _mm256_set_m128i(_mm_unpackhi_epi16(even, odd), _mm_unpacklo_epi16(even, odd)));
  }
}

// Converts 16 float16 to bfloat16 if none is infinite, NaN or subnormal. A carry rounds to nearest even, and
// an addition with the sign of the number changes the bias. Zeros are kept.
TILEWORK_INLINE __m256i float16_to_bfloat16(__m256i codes, __m256i is_zero) {
  const __m256i even = _mm256_and_si256(_mm256_srli_epi16(codes, 3), _mm256_set1_epi16(1));
  const __m256i carried = _mm256_add_epi16(_mm256_add_epi16(codes, _mm256_set1_epi16(3)), even);
  // The shift fills the top four bits with the sign; adding a number of that sign leaves one of them.
  const __m256i bias = _mm256_sign_epi16(_mm256_set1_epi16((127 - 15) << 7), codes);
  const __m256i number = _mm256_add_epi16(_mm256_srai_epi16(carried, 3), bias);
  return _mm256_blendv_epi8(number, codes, is_zero);
}

// Converts 128 elements.
TILEWORK_INLINE void cast_float16_to_bfloat16(const uint8_t* source, uint8_t* destination) {
  constexpr int64_t kRegisters = 2 * kBlocksTogether;
  // Below 0x1000 exactly for codes that are infinite, NaN or subnormal.
  __m256i smallest = _mm256_set1_epi16(-1);
#pragma GCC unroll 8
  for (int64_t i = 0; i < kRegisters; ++i) {
    const __m256i codes = load32(source + 32 * i);
    const __m256i doubled = _mm256_add_epi16(codes, codes);
    const __m256i is_zero = _mm256_cmpeq_epi16(doubled, _mm256_setzero_si256());
    const __m256i distance = _mm256_or_si256(_mm256_add_epi16(doubled, _mm256_set1_epi16(0x800)), is_zero);
    smallest = _mm256_min_epu16(smallest, distance);
    store32(destination + 32 * i, float16_to_bfloat16(codes, is_zero));
  }
  const __m256i special = _mm256_subs_epu16(_mm256_set1_epi16(0x1000), smallest);
  if (__builtin_expect(_mm256_testz_si256(special, special) != 0, 1)) return;
#pragma GCC unroll 1
  for (int64_t i = 0; i < kBlocksTogether; ++i) {
    store_bfloat16(destination + 64 * i, load_block<Dtype::kFloat16>(source + 64 * i));
  }
}

// Converts a 16-bit float to float8 directly. The element becomes a 16-bit word: its upper byte has exponent
// and mantissa of the target, its lower byte the bits to round away. Both bytes are then processed 32 at a
// time.
template <Dtype from, Dtype to>
struct ByHalfWords {
  static constexpr int kMantissa = Fields<to>::kMantissa;
  // Whether the exponents of float16 match those of the target, or follow them.
  static constexpr bool kIsAligned = from == Dtype::kFloat16 && kMantissa == 2;
  // Number of exponents below the smallest normal one that still have codes, or tie with 0.
  static constexpr int kBelow = kMantissa + 1;
  // Number of upper bytes for these exponents.
  static constexpr int kSubnormals = kIsAligned ? 0 : kBelow << kMantissa;
  // Upper byte of a normal number minus its code.
  static constexpr int kOffset = kIsAligned ? 0 : kMantissa << kMantissa;
  // First exponent of the source with a non-zero word; smaller numbers have the word 0, as has the first
  // number of that exponent.
  static constexpr int kFirstExponent = Fields<from>::kBias + 1 - Fields<to>::kBias - kBelow;
  // Shift from the doubled, unsigned source code to the word.
  static constexpr int kShift = 7 + kMantissa - Fields<from>::kMantissa;
};

// Meaning of the upper byte of a subnormal: its code is `base`, or the next one if `addend` plus the lower
// byte exceeds a half. `addend` is chosen so that this is certain, or exactly a half where a tie starts.
struct SubnormalBytes {
  // 16 bytes, repeated in both halves of a register.
  struct Table {
    alignas(32) std::array<uint8_t, 32> bytes{};
    constexpr void set(int index, int byte) {
      for (int half = 0; half < 2; ++half)
        bytes[static_cast<size_t>(index + 16 * half)] = static_cast<uint8_t>(byte);
    }
  };
  // Minus the code that the byte has for a normal number.
  Table bases[2];
  Table addends[2];
};

template <class How>
constexpr SubnormalBytes kSubnormalBytes = [] {
  SubnormalBytes bytes;
  for (int upper = 0; upper < How::kSubnormals; ++upper) {
    // In units of 1 / (2 << kMantissa) of the smallest code.
    const int exponent = upper >> How::kMantissa;
    const int number = ((1 << How::kMantissa) + (upper & ((1 << How::kMantissa) - 1))) << exponent;
    const int code = number >> (How::kMantissa + 1);
    const int remainder = number & ((2 << How::kMantissa) - 1);
    constexpr int kHalf = 1 << How::kMantissa;
    const int base = remainder >= kHalf ? code : code - 1;
    bytes.bases[upper / 16].set(upper % 16, base - std::max(upper - How::kOffset, 0));
    bytes.addends[upper / 16].set(upper % 16, remainder == kHalf ? 0x80 : 0xff);
  }
  return bytes;
}();

// Table lookup for bytes below 16 or 32; 0 for other bytes.
template <int kSize>
TILEWORK_INLINE __m256i look_up(const SubnormalBytes::Table (&tables)[2], const __m256i (&indices)[2]) {
  const auto part = [&](int i) { return _mm256_shuffle_epi8(load32(tables[i].bytes.data()), indices[i]); };
  return kSize <= 16 ? part(0) : _mm256_or_si256(part(0), part(1));
}

// Words of 16 unsigned codes between 0 and the limit; `doubled` are the source codes times 2.
template <Dtype from, Dtype to>
TILEWORK_INLINE __m256i half_words(__m256i codes, __m256i doubled, int limit) {
  using How = ByHalfWords<from, to>;
  if constexpr (How::kIsAligned) {
    const __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi16(0x7fff));
    const __m256i max = _mm256_set1_epi16(static_cast<int16_t>(limit << 8));
    if constexpr (to == Dtype::kFloat8E5m2) return _mm256_min_epu16(magnitude, max);
    // With the next exponent: the subnormals of float16 are the lower half of the target's.
    const __m256i next = _mm256_add_epi16(magnitude, _mm256_set1_epi16(1 << 10));
    return _mm256_min_epu16(_mm256_min_epu16(doubled, next), max);
  } else {
    constexpr int kFirst = How::kFirstExponent << (Fields<from>::kMantissa + 1);
    const __m256i number = _mm256_subs_epu16(doubled, _mm256_set1_epi16(static_cast<int16_t>(kFirst)));
    const auto max = static_cast<int16_t>(((limit + How::kOffset) << 8) >> How::kShift);
    return _mm256_slli_epi16(_mm256_min_epu16(number, _mm256_set1_epi16(max)), How::kShift);
  }
}

// Codes of 32 words, in pack order.
template <class How>
TILEWORK_INLINE __m256i round_half_words(__m256i low, __m256i high) {
  const __m256i apart =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
  const __m256i first = _mm256_shuffle_epi8(low, apart);
  const __m256i second = _mm256_shuffle_epi8(high, apart);
  const __m256i upper = _mm256_unpackhi_epi64(first, second);
  __m256i lower = _mm256_unpacklo_epi64(first, second);
  __m256i code = upper;
  if constexpr (!How::kIsAligned) {
    // A shuffle gives 0 for indices with the highest bit set.
    const __m256i past = _mm256_set1_epi8(0x70);
    const __m256i indices[2] = {_mm256_adds_epu8(upper, past),
                                _mm256_adds_epu8(_mm256_xor_si256(upper, _mm256_set1_epi8(0x10)), past)};
    constexpr const SubnormalBytes& kBytes = kSubnormalBytes<How>;
    code = _mm256_add_epi8(_mm256_subs_epu8(upper, _mm256_set1_epi8(How::kOffset)),
                           look_up<How::kSubnormals>(kBytes.bases, indices));
    lower = _mm256_adds_epu8(lower, look_up<How::kSubnormals>(kBytes.addends, indices));
  }
  // More than a half, or exactly a half after an odd code.
  const __m256i odd = _mm256_and_si256(code, _mm256_set1_epi8(1));
  const __m256i sum = _mm256_adds_epu8(_mm256_adds_epu8(lower, _mm256_set1_epi8(0x7e)), odd);
  return _mm256_sub_epi8(code, _mm256_cmpeq_epi8(sum, _mm256_set1_epi8(-1)));
}

// Converts 128 float16 or bfloat16 to a signed float8.
template <Dtype from, Dtype to>
TILEWORK_INLINE void cast_half_words(const uint8_t* source, uint8_t* destination,
                                     const CastOptions& options) {
  // One past the limit means overflow in every type that has it.
  const int limit = kLimit<to> + (options.saturate ? 0 : 1);
  __m256i largest = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int64_t i = 0; i < kBlocksTogether; ++i) {
    const __m256i low = load32(source + 64 * i);
    const __m256i high = load32(source + 64 * i + 32);
    const __m256i doubled_low = _mm256_add_epi16(low, low);
    const __m256i doubled_high = _mm256_add_epi16(high, high);
    largest = _mm256_max_epu16(largest, _mm256_max_epu16(doubled_low, doubled_high));
    const __m256i magnitudes = round_half_words<ByHalfWords<from, to>>(
        half_words<from, to>(low, doubled_low, limit), half_words<from, to>(high, doubled_high, limit));
    const __m256i signs =
        _mm256_and_si256(_mm256_packs_epi16(low, high), _mm256_set1_epi8(static_cast<char>(0x80)));
    store32(destination + kBlock * i, in_order(with_signs<to>(magnitudes, signs)));
  }
  constexpr int kInfinity = from == Dtype::kFloat16 ? 0xf800 : 0xff00;
  const __m256i is_nan = _mm256_subs_epu16(largest, _mm256_set1_epi16(static_cast<int16_t>(kInfinity)));
  if (__builtin_expect(_mm256_testz_si256(is_nan, is_nan) != 0, 1)) return;
#pragma GCC unroll 1
  for (int64_t i = 0; i < kBlocksTogether; ++i) {
    const Block block = load_block<from>(source + 64 * i);
    store32(destination + kBlock * i, encode_float8_or_nan<to>(block, options.saturate));
  }
}

// Converts 128 float32 to an 8- or 4-bit type with sign, exponent and mantissa.
template <Dtype to>
TILEWORK_INLINE void cast_to_small_float(const uint8_t* source, uint8_t* destination,
                                         const CastOptions& options) {
  constexpr int64_t kSourceBytes = kBlock * 4;
  constexpr int64_t kBytes = kBlock * kElementBits<to> / 8;
  __m256 has_nan = _mm256_setzero_ps();
#pragma GCC unroll 4
  for (int64_t i = 0; i < kBlocksTogether; ++i) {
    const Block block = load_block<Dtype::kFloat32>(source + kSourceBytes * i);
    if constexpr (to == Dtype::kFloat4E2m1fn) {
      store16(destination + kBytes * i, encode_float4_number(block, &has_nan));
    } else {
      store32(destination + kBytes * i, encode_float8_number<to>(block, options.saturate, &has_nan));
    }
  }
  if (__builtin_expect(!is_any_nan(has_nan), 1)) return;
#pragma GCC unroll 1
  for (int64_t i = 0; i < kBlocksTogether; ++i) {
    const Block block = load_block<Dtype::kFloat32>(source + kSourceBytes * i);
    if constexpr (to == Dtype::kFloat4E2m1fn) {
      store16(destination + kBytes * i, encode_float4_or_nan(block, options.mode));
    } else {
      store32(destination + kBytes * i, encode_float8_or_nan<to>(block, options.saturate));
    }
  }
}

// Pairs that are tested for special values once per several blocks. If there are any, all these blocks are
// cast again.
template <Dtype from, Dtype to>
constexpr bool kIsTogether = (from == Dtype::kFloat32 && (kIsSmallFloat<to> || to == Dtype::kFloat4E2m1fn)) ||
                             ((from == Dtype::kFloat16 || from == Dtype::kBfloat16) && kIsSmallFloat<to>) ||
                             (from == Dtype::kFloat16 && to == Dtype::kBfloat16);

template <Dtype from, Dtype to>
TILEWORK_INLINE void cast_block(const uint8_t* source, uint8_t* destination, const CastOptions& options) {
  if constexpr (from == Dtype::kInt4 && to == Dtype::kInt8) {
    store32(destination, extend_signs<4>(unpack_nibbles(source)));
  } else if constexpr (from == Dtype::kUint4 && to == Dtype::kUint8) {
    store32(destination, unpack_nibbles(source));
  } else if constexpr ((from == Dtype::kInt8 && to == Dtype::kInt4) ||
                       (from == Dtype::kUint8 && to == Dtype::kUint4)) {
    store16(destination, pack_nibbles(load32(source)));
  } else if constexpr (from == Dtype::kInt2 && to == Dtype::kInt8) {
    store32(destination, extend_signs<2>(unpack_crumbs(source)));
  } else if constexpr (from == Dtype::kUint2 && to == Dtype::kUint8) {
    store32(destination, unpack_crumbs(source));
  } else if constexpr ((from == Dtype::kInt8 && to == Dtype::kInt2) ||
                       (from == Dtype::kUint8 && to == Dtype::kUint2)) {
    store_crumbs(destination, load32(source));
  } else if constexpr (from == Dtype::kInt64 && to == Dtype::kFloat32) {
    cast_int64_to_float32(source, destination);
  } else if constexpr (from == Dtype::kFloat64 && (to == Dtype::kFloat16 || kIsSmallFloat<to>)) {
    store_block<to>(destination, load_odd_doubles(source), options);
  } else if constexpr (from == Dtype::kFloat64) {
    cast_doubles<to>(source, destination, options);
  } else if constexpr (from == Dtype::kFloat16 && to == Dtype::kBfloat16) {
    cast_float16_to_bfloat16(source, destination);
  } else if constexpr (from == Dtype::kBfloat16 && to == Dtype::kFloat16) {
    cast_bfloat16_to_float16(source, destination);
  } else if constexpr (kIsTogether<from, to> && from == Dtype::kFloat32) {
    cast_to_small_float<to>(source, destination, options);
  } else if constexpr (kIsTogether<from, to>) {
    cast_half_words<from, to>(source, destination, options);
  } else if constexpr (from == Dtype::kBfloat16 && to != Dtype::kFloat32) {
    store_block<to>(destination, load_bfloat16(source), options);
  } else {
    store_block<to>(destination, load_block<from>(source), options);
  }
}

template <Dtype from, Dtype to>
void cast_by_blocks(const CastArguments& arguments) {
  cast_blocks<from, to, kIsTogether<from, to> ? kBlock * kBlocksTogether : kBlock>(
      arguments, [](const uint8_t* source, uint8_t* destination, const CastOptions& options)
                     __attribute__((always_inline)) { cast_block<from, to>(source, destination, options); });
}

// Whether the compiler's code for a plain loop is as fast.
template <Dtype from, Dtype to, CastRounding rounding>
constexpr bool kIsPlain = [] {
  constexpr auto is_number = [](Dtype dtype) {
    return (dtype >= Dtype::kInt8 && dtype <= Dtype::kBool) || dtype == Dtype::kFloat32 ||
           dtype == Dtype::kFloat64;
  };
  constexpr bool is_by_float32 =
      (from == Dtype::kFloat32 && kElementBits<to> <= 32 && to != Dtype::kUint32) ||
      (to == Dtype::kFloat32 && (kElementBits<from> <= 16 || from == Dtype::kInt64));
  constexpr bool is_narrow = to == Dtype::kInt8 || to == Dtype::kUint8 || to == Dtype::kInt16 ||
                             to == Dtype::kUint16 || to == Dtype::kInt32;
  constexpr bool is_by_int32 = from == Dtype::kFloat64 && is_narrow;
  return is_number(from) && is_number(to) && !is_by_int32 &&
         (rounding == CastRounding::kOdd || !is_by_float32);
}();

}  // namespace

template <Dtype from, Dtype to, CastRounding rounding>
void cast_avx2(const CastArguments& arguments) {
  if constexpr (kIsPlain<from, to, rounding>) {
    cast_numbers<rounding, from, to>(arguments);
  } else {
    cast_by_blocks<from, to>(arguments);
  }
}

#define TILEWORK_INSTANTIATE_kAvx2(from, to, rounding) \
  template void cast_avx2<Dtype::from, Dtype::to, CastRounding::rounding>(const CastArguments&);
#define TILEWORK_INSTANTIATE_kPortable(from, to, rounding)
#define TILEWORK_CAST_KERNEL(from, to, isa, rounding) TILEWORK_INSTANTIATE_##isa(from, to, rounding)
#include "dtype/casts.def"
#undef TILEWORK_CAST_KERNEL

}  // namespace tilework
