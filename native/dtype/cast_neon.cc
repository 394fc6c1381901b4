// Casts with NEON, which every 64-bit ARM CPU has. Values that are exact in float32 pass through four
// registers of four float32 lanes. Casts among integers, float64 and float32 are in cast_numbers.h: the
// compiler generates the same code.
#include <arm_neon.h>

#include <cstring>

#include "dtype/cast_blocks.h"
#include "dtype/casts.h"

namespace tilework {
namespace {

#define TILEWORK_INLINE [[gnu::always_inline]] inline

// Elements per block: 16 byte codes fill a register.
constexpr int64_t kBlock = 16;

struct Block {
  float32x4_t lanes[4];
};

TILEWORK_INLINE uint32x4_t bits_of(float32x4_t value) { return vreinterpretq_u32_f32(value); }
TILEWORK_INLINE float32x4_t floats_of(uint32x4_t bits) { return vreinterpretq_f32_u32(bits); }
TILEWORK_INLINE uint32x4_t all(uint32_t value) { return vdupq_n_u32(value); }
TILEWORK_INLINE uint16x8_t all_words(int value) { return vdupq_n_u16(static_cast<uint16_t>(value)); }

template <Dtype dtype>
struct Fields;
#define TILEWORK_DTYPE(enumerator, name, bits, kind, mantissa_bits, bias, specials, dlpack_code) \
  template <>                                                                                    \
  struct Fields<Dtype::enumerator> {                                                             \
    static constexpr int kMantissa = mantissa_bits;                                              \
    static constexpr int kBias = bias;                                                           \
    static constexpr Specials kSpecials = Specials::specials;                                    \
  };
#include "facts/dtypes.def"
#undef TILEWORK_DTYPE

// Unpacks 8 bytes to 16 bytes of 4 bits each; the low half comes first.
TILEWORK_INLINE uint8x16_t unpack_nibbles(const uint8_t* at) {
  const uint8x8_t bytes = vld1_u8(at);
  const uint8x8x2_t zipped = vzip_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8(bytes, 4));
  return vcombine_u8(zipped.val[0], zipped.val[1]);
}

TILEWORK_INLINE int8x16_t extend_signs(uint8x16_t nibbles) {
  return vshrq_n_s8(vreinterpretq_s8_u8(vshlq_n_u8(nibbles, 4)), 4);
}

// Packs the low 4 bits of 16 bytes.
TILEWORK_INLINE void store_nibbles(uint8_t* at, uint8x16_t bytes) {
  const uint8x16_t low = vandq_u8(bytes, vdupq_n_u8(15));
  vst1_u8(at, vget_low_u8(vorrq_u8(vuzp1q_u8(low, low), vshlq_n_u8(vuzp2q_u8(low, low), 4))));
}

// Packs the low 2 bits of 16 bytes.
TILEWORK_INLINE void store_crumbs(uint8_t* at, uint8x16_t bytes) {
  const uint32x4_t fours = vreinterpretq_u32_u8(vandq_u8(bytes, vdupq_n_u8(3)));
  const uint32x4_t pairs = vorrq_u32(fours, vshrq_n_u32(fours, 6));
  const uint32x4_t packed = vorrq_u32(pairs, vshrq_n_u32(pairs, 12));
  const uint8x8_t narrow = vmovn_u16(vcombine_u16(vmovn_u32(packed), vdup_n_u16(0)));
  std::memcpy(at, &narrow, 4);
}

// Packs the low byte of 16 lanes.
TILEWORK_INLINE uint8x16_t low_bytes(const uint32x4_t (&lanes)[4]) {
  const uint16x8_t first = vcombine_u16(vmovn_u32(lanes[0]), vmovn_u32(lanes[1]));
  const uint16x8_t second = vcombine_u16(vmovn_u32(lanes[2]), vmovn_u32(lanes[3]));
  return vcombine_u8(vmovn_u16(first), vmovn_u16(second));
}

TILEWORK_INLINE Block float_block(int16x8_t first, int16x8_t second) {
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(first))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(first))),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(second))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(second)))}};
}

TILEWORK_INLINE Block float_block(int8x16_t bytes) {
  return float_block(vmovl_s8(vget_low_s8(bytes)), vmovl_s8(vget_high_s8(bytes)));
}

TILEWORK_INLINE Block float_block(uint8x16_t bytes) {
  return float_block(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))),
                     vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(bytes))));
}

TILEWORK_INLINE float32x4_t decode_bfloat16(uint16x4_t codes) {
  const uint32x4_t bits = vshll_n_u16(codes, 16);
  const uint32x4_t is_nan = vcgtq_u32(vandq_u32(bits, all(0x7fffffff)), all(0x7f800000));
  return floats_of(vorrq_u32(bits, vandq_u32(is_nan, all(0x400000))));
}

TILEWORK_INLINE float32x4_t decode_scale(uint32x4_t codes) {
  // 2^-127 is a subnormal.
  const uint32x4_t number = vbslq_u32(vceqq_u32(codes, all(0)), all(1 << 22), vshlq_n_u32(codes, 23));
  return floats_of(vbslq_u32(vceqq_u32(codes, all(0xff)), all(0x7fc00000), number));
}

// Decodes e5m2fnuz, whose largest exponent float16 reserves for infinities: moves the bits to their position
// in a float32 and raises the exponent. For a subnormal the implicit leading one that this adds is subtracted
// again.
TILEWORK_INLINE float32x4_t decode_e5m2fnuz(uint32x4_t codes) {
  using F = Fields<Dtype::kFloat8E5m2fnuz>;
  constexpr int kRaise = 127 - F::kBias;
  const uint32x4_t magnitude = vandq_u32(codes, all(0x7f));
  const uint32x4_t sign = vshlq_n_u32(vsubq_u32(codes, magnitude), 24);
  const uint32x4_t moved = vshlq_n_u32(magnitude, 23 - F::kMantissa);
  const uint32x4_t normal = vaddq_u32(moved, all(kRaise << 23));
  const uint32x4_t least = all((kRaise + 1) << 23);
  const float32x4_t subnormal = vsubq_f32(floats_of(vaddq_u32(moved, least)), floats_of(least));
  const uint32x4_t value = vbslq_u32(vcltq_u32(moved, all(1 << 23)), bits_of(subnormal), normal);
  const uint32x4_t is_nan = vceqq_u32(codes, all(0x80));
  return floats_of(vbslq_u32(is_nan, all(0xffc00000), vorrq_u32(value, sign)));
}

// Decodes eight codes of types with an exponent no longer than float16's: moves them to the bits of float16,
// widens these in hardware, and scales by the difference of the biases.
template <Dtype from>
TILEWORK_INLINE void decode_by_float16(int8x8_t codes, float32x4_t* lanes) {
  using F = Fields<from>;
  constexpr int kShift = 10 - F::kMantissa;
  uint16x8_t bits = vreinterpretq_u16_s16(vshlq_n_s16(vmovl_s8(codes), kShift));
  if constexpr (from == Dtype::kFloat8E5m2) {
    // Quiets NaN explicitly: the compiler drops the conversion if the target is float16.
    const uint16x8_t is_nan = vcgtq_u16(vandq_u16(bits, all_words(0x7fff)), all_words(0x7c00));
    bits = vorrq_u16(bits, vandq_u16(is_nan, all_words(0x200)));
  } else {
    constexpr bool kIsFn = F::kSpecials == Specials::kFn;
    bits = vandq_u16(bits, all_words(0xbf80));
    const uint16x8_t is_nan = kIsFn ? vceqq_u16(vandq_u16(bits, all_words(0x7fff)), all_words(0x3f80))
                                    : vceqq_u16(bits, all_words(0x8000));
    const uint16x8_t nan = vorrq_u16(vandq_u16(bits, all_words(0x8000)), all_words(0x7e00));
    bits = vbslq_u16(is_nan, nan, bits);
  }
  constexpr float kScale = 1 << (15 - F::kBias);
  lanes[0] = vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(bits))), kScale);
  lanes[1] = vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(bits))), kScale);
}

// Decodes 16 codes of float4 by looking up the upper two bytes of their values.
TILEWORK_INLINE Block decode_float4(const uint8_t* at) {
  alignas(16) static constexpr uint8_t kHigh[] = {0,    0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40,
                                                  0x80, 0xbf, 0xbf, 0xbf, 0xc0, 0xc0, 0xc0, 0xc0};
  alignas(16) static constexpr uint8_t kLow[] = {0, 0, 0x80, 0xc0, 0, 0x40, 0x80, 0xc0,
                                                 0, 0, 0x80, 0xc0, 0, 0x40, 0x80, 0xc0};
  const uint8x16_t codes = unpack_nibbles(at);
  const uint8x16x2_t halves = vzipq_u8(vqtbl1q_u8(vld1q_u8(kLow), codes), vqtbl1q_u8(vld1q_u8(kHigh), codes));
  Block block;
  for (int i = 0; i < 2; ++i) {
    const uint16x8_t upper = vreinterpretq_u16_u8(halves.val[i]);
    block.lanes[2 * i] = floats_of(vshll_n_u16(vget_low_u16(upper), 16));
    block.lanes[2 * i + 1] = floats_of(vshll_n_u16(vget_high_u16(upper), 16));
  }
  return block;
}

// Decodes 16 bytes, four lanes at a time, by `decode`.
template <class Decode>
TILEWORK_INLINE Block decode_bytes(const uint8_t* at, Decode decode) {
  const uint8x16_t codes = vld1q_u8(at);
  const uint16x8_t words[2] = {vmovl_u8(vget_low_u8(codes)), vmovl_u8(vget_high_u8(codes))};
  Block block;
  for (int i = 0; i < 2; ++i) {
    block.lanes[2 * i] = decode(vmovl_u16(vget_low_u16(words[i])));
    block.lanes[2 * i + 1] = decode(vmovl_u16(vget_high_u16(words[i])));
  }
  return block;
}

TILEWORK_INLINE uint16x8_t load_words(const uint8_t* at) { return vreinterpretq_u16_u8(vld1q_u8(at)); }

template <Dtype from>
TILEWORK_INLINE Block load_block(const uint8_t* at) {
  Block block;
  if constexpr (from == Dtype::kFloat32) {
    for (int i = 0; i < 4; ++i) block.lanes[i] = vreinterpretq_f32_u8(vld1q_u8(at + 16 * i));
  } else if constexpr (from == Dtype::kFloat16 || from == Dtype::kBfloat16) {
    for (int i = 0; i < 4; ++i) {
      const uint16x4_t codes = vreinterpret_u16_u8(vld1_u8(at + 8 * i));
      block.lanes[i] =
          from == Dtype::kFloat16 ? vcvt_f32_f16(vreinterpret_f16_u16(codes)) : decode_bfloat16(codes);
    }
  } else if constexpr (from == Dtype::kInt8) {
    block = float_block(vreinterpretq_s8_u8(vld1q_u8(at)));
  } else if constexpr (from == Dtype::kUint8) {
    block = float_block(vld1q_u8(at));
  } else if constexpr (from == Dtype::kInt16) {
    block = float_block(vreinterpretq_s16_u16(load_words(at)), vreinterpretq_s16_u16(load_words(at + 16)));
  } else if constexpr (from == Dtype::kUint16) {
    for (int i = 0; i < 4; ++i) {
      block.lanes[i] = vcvtq_f32_u32(vmovl_u16(vreinterpret_u16_u8(vld1_u8(at + 8 * i))));
    }
  } else if constexpr (from == Dtype::kInt4) {
    block = float_block(extend_signs(unpack_nibbles(at)));
  } else if constexpr (from == Dtype::kUint4) {
    block = float_block(unpack_nibbles(at));
  } else if constexpr (from == Dtype::kFloat4E2m1fn) {
    block = decode_float4(at);
  } else if constexpr (from == Dtype::kFloat8E8m0fnu) {
    block = decode_bytes(at, decode_scale);
  } else if constexpr (from == Dtype::kFloat8E5m2fnuz) {
    block = decode_bytes(at, decode_e5m2fnuz);
  } else {
    const int8x16_t codes = vreinterpretq_s8_u8(vld1q_u8(at));
    decode_by_float16<from>(vget_low_s8(codes), block.lanes);
    decode_by_float16<from>(vget_high_s8(codes), block.lanes + 2);
  }
  return block;
}

// Rounds to nearest even by a carry, which would destroy NaN; NaN is inserted afterwards.
TILEWORK_INLINE uint16x4_t encode_bfloat16(float32x4_t value) {
  const uint32x4_t bits = bits_of(value);
  const uint32x4_t even = vandq_u32(vshrq_n_u32(bits, 16), all(1));
  const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, all(0x7fff)), even);
  const uint32x4_t nan = vorrq_u32(vandq_u32(bits, all(0x80000000)), all(0x7fc00000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(value, value), rounded, nan), 16);
}

// Magnitudes of four codes. Adding a power of two that leaves as many fraction bits as the code has makes the
// adder round. Subnormals use the power of the smallest normal number.
template <Dtype to>
TILEWORK_INLINE uint32x4_t round_magnitude(float32x4_t value, bool saturate, uint32_t nan_code) {
  using F = Fields<to>;
  constexpr int kShift = 23 - F::kMantissa;
  constexpr uint32_t kAllOnes = (1u << (kElementBits<to> - 1)) - 1;
  constexpr uint32_t kLimit = F::kSpecials == Specials::kIeee ? kAllOnes - (1u << F::kMantissa)
                              : F::kSpecials == Specials::kFn ? kAllOnes - 1
                                                              : kAllOnes;
  constexpr uint32_t kMinExponent = 127 + 1 - F::kBias;
  // The largest finite value, or the value of the code after it, which means overflow in every type that has
  // it.
  const uint32_t limit_bits = ((kLimit + (saturate ? 0 : 1)) << kShift) + ((127u - F::kBias) << 23);
  const uint32x4_t magnitude = vminq_u32(vandq_u32(bits_of(value), all(0x7fffffff)), all(limit_bits));
  const uint32x4_t exponent = vmaxq_u32(vandq_u32(magnitude, all(0x7f800000)), all(kMinExponent << 23));
  const uint32x4_t power = vaddq_u32(exponent, all(kShift << 23));
  const uint32x4_t sum = bits_of(vaddq_f32(floats_of(magnitude), floats_of(power)));
  const uint32x4_t start = vsubq_u32(vshrq_n_u32(exponent, kShift), all(kMinExponent << F::kMantissa));
  const uint32x4_t code = vaddq_u32(start, vsubq_u32(sum, power));
  return vbslq_u32(vceqq_f32(value, value), code, all(nan_code));
}

// 0x80 in the bytes of negative lanes.
TILEWORK_INLINE uint8x16_t sign_bytes(const Block& block) {
  uint32x4_t signs[4];
  for (int i = 0; i < 4; ++i) signs[i] = vshlq_n_u32(vshrq_n_u32(bits_of(block.lanes[i]), 31), 7);
  return low_bytes(signs);
}

template <Dtype to>
TILEWORK_INLINE uint8x16_t encode_float8(const Block& block, bool saturate) {
  constexpr Specials kSpecials = Fields<to>::kSpecials;
  constexpr uint32_t kNaN = kSpecials == Specials::kFnuz ? 0x80 : kSpecials == Specials::kFn ? 0x7f : 0x7e;
  uint32x4_t codes[4];
  for (int i = 0; i < 4; ++i) codes[i] = round_magnitude<to>(block.lanes[i], saturate, kNaN);
  const uint8x16_t magnitude = low_bytes(codes);
  uint8x16_t sign = sign_bytes(block);
  // There 0x80 is NaN, so zero has no sign.
  if constexpr (kSpecials == Specials::kFnuz) sign = vbicq_u8(sign, vceqzq_u8(magnitude));
  return vorrq_u8(magnitude, sign);
}

TILEWORK_INLINE uint8x16_t encode_float4(const Block& block, CastMode mode) {
  // NaN becomes 6; in onnx.reference -0, or 0 for a negative NaN.
  const bool is_onnx = mode == CastMode::kOnnx;
  constexpr uint8_t kNaN = 0x47;
  uint32x4_t codes[4];
  for (int i = 0; i < 4; ++i) codes[i] = round_magnitude<Dtype::kFloat4E2m1fn>(block.lanes[i], true, kNaN);
  const uint8x16_t found = low_bytes(codes);
  const uint8x16_t sign = vshrq_n_u8(sign_bytes(block), 4);
  const uint8x16_t is_nan = vceqq_u8(found, vdupq_n_u8(kNaN));
  const uint8x16_t nan = is_onnx ? veorq_u8(sign, vdupq_n_u8(8)) : vdupq_n_u8(7);
  return vbslq_u8(is_nan, nan, vorrq_u8(found, sign));
}

// Added to the bits of a float32 before its mantissa is cut off.
TILEWORK_INLINE uint32_t scale_addend(ScaleRounding round) {
  return round == ScaleRounding::kUp ? 0x7fffff : round == ScaleRounding::kNearest ? 0x400000 : 0;
}

TILEWORK_INLINE uint32x4_t encode_scale(float32x4_t value, const CastOptions& options) {
  const uint32x4_t bits = bits_of(value);
  const uint32x4_t magnitude = vandq_u32(bits, all(0x7fffffff));
  const uint32x4_t is_zero = vceqzq_u32(magnitude);
  const uint32x4_t is_negative = vbicq_u32(vcgeq_u32(bits, all(0x80000000)), is_zero);
  // Gives values between 2^-127 and 2^-126 the mantissa of normal numbers.
  const uint32x4_t doubled = vqsubq_u32(vshlq_n_u32(magnitude, 1), all(0x800000));
  const uint32x4_t number = vbslq_u32(vcltq_u32(magnitude, all(0x800000)), doubled, magnitude);
  const uint32x4_t carried = vaddq_u32(number, all(scale_addend(options.round)));
  const uint32x4_t code = vminq_u32(vshrq_n_u32(carried, 23), all(options.saturate ? 0xfe : 0xff));
  uint32x4_t has_none = vorrq_u32(vcgtq_u32(magnitude, all(0x7f800000)), is_negative);
  if (!options.saturate) has_none = vorrq_u32(has_none, is_zero);
  return vorrq_u32(code, has_none);
}

// As onnx.reference: drops the sign, maps infinities to NaN, and treats mantissas of subnormals like any
// other.
TILEWORK_INLINE uint32x4_t encode_scale_of_onnx(float32x4_t value, const CastOptions& options) {
  const uint32x4_t magnitude = vandq_u32(bits_of(value), all(0x7fffffff));
  uint32x4_t addend = all(scale_addend(options.round));
  if (options.round == ScaleRounding::kNearest) {
    // A half rounds up only for normal numbers; a comparison gives -1.
    addend = vaddq_u32(addend, vcltq_u32(magnitude, all(0x800000)));
  }
  const uint32x4_t code =
      vminq_u32(vshrq_n_u32(vaddq_u32(magnitude, addend), 23), all(options.saturate ? 0xfe : 0xff));
  return vorrq_u32(code, vcgeq_u32(magnitude, all(0x7f800000)));
}

TILEWORK_INLINE uint8x16_t encode_scales(const Block& block, const CastOptions& options) {
  uint32x4_t codes[4];
  for (int i = 0; i < 4; ++i) {
    codes[i] = options.mode == CastMode::kSpec ? encode_scale(block.lanes[i], options)
                                               : encode_scale_of_onnx(block.lanes[i], options);
  }
  return low_bytes(codes);
}

// Low bits of the integer nearest to each lane, as bytes. Floats that do not fit an int32 have no low bits.
TILEWORK_INLINE uint8x16_t encode_low_bits(const Block& block, CastMode mode) {
  uint32x4_t whole[4];
  for (int i = 0; i < 4; ++i) {
    const float32x4_t value = block.lanes[i];
    const int32x4_t integer = mode == CastMode::kSpec ? vcvtnq_s32_f32(value) : vcvtq_s32_f32(value);
    const uint32x4_t is_held = vcaltq_f32(value, vdupq_n_f32(2147483648.0f));
    whole[i] = vandq_u32(vreinterpretq_u32_s32(integer), is_held);
  }
  return low_bytes(whole);
}

TILEWORK_INLINE uint8x16_t encode_bools(const Block& block) {
  uint32x4_t truth[4];
  for (int i = 0; i < 4; ++i) truth[i] = vbicq_u32(all(1), vceqzq_f32(block.lanes[i]));
  return low_bytes(truth);
}

// Rounds eight lanes toward zero; the instruction saturates and maps NaN to 0.
template <Dtype to>
TILEWORK_INLINE uint16x8_t encode_words(float32x4_t first, float32x4_t second) {
  const int32x4_t low = vcvtq_s32_f32(first);
  const int32x4_t high = vcvtq_s32_f32(second);
  if constexpr (to == Dtype::kUint8 || to == Dtype::kUint16) {
    return vcombine_u16(vqmovun_s32(low), vqmovun_s32(high));
  } else {
    return vreinterpretq_u16_s16(vcombine_s16(vqmovn_s32(low), vqmovn_s32(high)));
  }
}

template <Dtype to>
TILEWORK_INLINE uint8x16_t encode_bytes(const Block& block) {
  const uint16x8_t low = encode_words<to>(block.lanes[0], block.lanes[1]);
  const uint16x8_t high = encode_words<to>(block.lanes[2], block.lanes[3]);
  if constexpr (to == Dtype::kUint8) {
    return vcombine_u8(vqmovn_u16(low), vqmovn_u16(high));
  } else {
    return vreinterpretq_u8_s8(
        vcombine_s8(vqmovn_s16(vreinterpretq_s16_u16(low)), vqmovn_s16(vreinterpretq_s16_u16(high))));
  }
}

template <Dtype to>
TILEWORK_INLINE void store_block(uint8_t* at, const Block& block, const CastOptions& options) {
  if constexpr (to == Dtype::kFloat32) {
    for (int i = 0; i < 4; ++i) vst1q_u8(at + 16 * i, vreinterpretq_u8_f32(block.lanes[i]));
  } else if constexpr (to == Dtype::kInt32) {
    for (int i = 0; i < 4; ++i) vst1q_u8(at + 16 * i, vreinterpretq_u8_s32(vcvtq_s32_f32(block.lanes[i])));
  } else if constexpr (to == Dtype::kFloat16) {
    for (int i = 0; i < 4; ++i) vst1_u8(at + 8 * i, vreinterpret_u8_f16(vcvt_f16_f32(block.lanes[i])));
  } else if constexpr (to == Dtype::kBfloat16) {
    for (int i = 0; i < 4; ++i) vst1_u8(at + 8 * i, vreinterpret_u8_u16(encode_bfloat16(block.lanes[i])));
  } else if constexpr (to == Dtype::kInt16 || to == Dtype::kUint16) {
    for (int i = 0; i < 2; ++i) {
      const uint16x8_t words = encode_words<to>(block.lanes[2 * i], block.lanes[2 * i + 1]);
      vst1q_u8(at + 16 * i, vreinterpretq_u8_u16(words));
    }
  } else if constexpr (to == Dtype::kInt8 || to == Dtype::kUint8) {
    vst1q_u8(at, encode_bytes<to>(block));
  } else if constexpr (to == Dtype::kBool) {
    vst1q_u8(at, encode_bools(block));
  } else if constexpr (to == Dtype::kFloat4E2m1fn) {
    store_nibbles(at, encode_float4(block, options.mode));
  } else if constexpr (to == Dtype::kInt4 || to == Dtype::kUint4) {
    store_nibbles(at, encode_low_bits(block, options.mode));
  } else if constexpr (to == Dtype::kInt2 || to == Dtype::kUint2) {
    store_crumbs(at, encode_low_bits(block, options.mode));
  } else if constexpr (to == Dtype::kFloat8E8m0fnu) {
    vst1q_u8(at, encode_scales(block, options));
  } else {
    vst1q_u8(at, encode_float8<to>(block, options.saturate));
  }
}

template <Dtype from, Dtype to>
TILEWORK_INLINE void cast_block(const uint8_t* source, uint8_t* destination, const CastOptions& options) {
  if constexpr (from == Dtype::kInt4 && to == Dtype::kInt8) {
    vst1q_u8(destination, vreinterpretq_u8_s8(extend_signs(unpack_nibbles(source))));
  } else if constexpr (from == Dtype::kUint4 && to == Dtype::kUint8) {
    vst1q_u8(destination, unpack_nibbles(source));
  } else if constexpr ((from == Dtype::kInt8 && to == Dtype::kInt4) ||
                       (from == Dtype::kUint8 && to == Dtype::kUint4)) {
    store_nibbles(destination, vld1q_u8(source));
  } else if constexpr ((from == Dtype::kInt8 && to == Dtype::kInt2) ||
                       (from == Dtype::kUint8 && to == Dtype::kUint2)) {
    store_crumbs(destination, vld1q_u8(source));
  } else {
    store_block<to>(destination, load_block<from>(source), options);
  }
}

}  // namespace

template <Dtype from, Dtype to, CastRounding rounding>
void cast_neon(const CastArguments& arguments) {
  cast_blocks<from, to, kBlock>(
      arguments, [](const uint8_t* source, uint8_t* destination, const CastOptions& options)
                     __attribute__((always_inline)) { cast_block<from, to>(source, destination, options); });
}

#define TILEWORK_INSTANTIATE_kNeon(from, to, rounding) \
  template void cast_neon<Dtype::from, Dtype::to, CastRounding::rounding>(const CastArguments&);
#define TILEWORK_INSTANTIATE_kPortable(from, to, rounding)
#define TILEWORK_CAST_KERNEL(from, to, isa, rounding) TILEWORK_INSTANTIATE_##isa(from, to, rounding)
#include "dtype/casts.def"
#undef TILEWORK_CAST_KERNEL

}  // namespace tilework
