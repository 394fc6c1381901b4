// The kernels of all block types, one code for all instruction sets: codes of a byte are taken from a block
// 16 at a time and scaled in registers (codes16.h). Signs and ternary vectors are applied to 8 codes at a
// time in a 64-bit integer (SWAR). Everything has internal linkage, as block_fields.h.
#pragma once

#include <array>
#include <cstdint>

#include "blocks/block_fields.h"
#include "blocks/codes16.h"
#include "blocks/dequantize.h"
#include "blocks/vector_tables.h"

namespace tilework {
namespace {

// Of each byte with its bits b0 to b7, eight bytes of 0xFF or 0, the first by b0.
constexpr std::array<uint64_t, 256> kByteMasks = [] {
  std::array<uint64_t, 256> masks{};
  for (size_t byte = 0; byte < 256; ++byte) {
    for (size_t bit = 0; bit < 8; ++bit) {
      if (byte >> bit & 1) masks[byte] |= uint64_t{0xFF} << 8 * bit;
    }
  }
  return masks;
}();

// The masks of seven stored signs and an eighth that makes the number of minus signs even.
constexpr std::array<uint64_t, 128> kSignMasks = [] {
  std::array<uint64_t, 128> masks{};
  for (size_t signs = 0; signs < 128; ++signs) {
    masks[signs] = kByteMasks[signs | static_cast<size_t>(std::popcount(signs) & 1) << 7];
  }
  return masks;
}();

constexpr uint64_t kOnes = 0x0101010101010101;

// Negates the components whose byte of `mask` is 0xFF. None is 0, so no carry reaches the next.
TILEWORK_INLINE_KERNEL uint64_t with_signs(uint64_t vector, uint64_t mask) {
  return (vector ^ mask) + (mask & kOnes);
}

// Adds 1, or -1, to 8 * each component, without carries between them.
TILEWORK_INLINE_KERNEL uint64_t iq1_codes(uint64_t vector, bool is_negative) {
  const uint64_t addend = is_negative ? ~uint64_t{0} : kOnes;
  constexpr uint64_t kTops = kOnes << 7;
  // Components are -1, 0, 1: times 8 they keep only the sign's copies, so the bits that leave a byte are
  // dropped.
  const uint64_t eightfold = (vector << 3) & ~(kOnes * 7);
  return ((eightfold & ~kTops) + (addend & ~kTops)) ^ ((eightfold ^ addend) & kTops);
}

template <BlockType type>
void dequantize(const uint8_t* b, float* numbers);

#define TILEWORK_BLOCK(type) \
  template <>                \
  TILEWORK_INLINE_KERNEL void dequantize<BlockType::type>(const uint8_t* b, float* numbers)

// Codes 0 to 15 and 16 to 31 of 16 bytes of nibbles.
TILEWORK_INLINE_KERNEL Codes16 low_nibbles(const uint8_t* at) { return bits_at(at, 0, 15); }
TILEWORK_INLINE_KERNEL Codes16 high_nibbles(const uint8_t* at) { return bits_at(at, 4, 15); }

TILEWORK_BLOCK(kQ40) {
  const float d = half_at(b);
  store_scaled(low_nibbles(b + 2) - 8, d, numbers);
  store_scaled(high_nibbles(b + 2) - 8, d, numbers + 16);
}

TILEWORK_BLOCK(kQ41) {
  const float d = half_at(b);
  const float m = half_at(b + 2);
  store_scaled(low_nibbles(b + 4), d, m, numbers);
  store_scaled(high_nibbles(b + 4), d, m, numbers + 16);
}

// Bit 4 of 16 codes from the bits of 2 bytes.
TILEWORK_INLINE_KERNEL Codes16 fifth_bits(const uint8_t* at) {
  return codes_of(kByteMasks[at[0]], kByteMasks[at[1]]) & 16;
}

TILEWORK_BLOCK(kQ50) {
  const float d = half_at(b);
  store_scaled((low_nibbles(b + 6) | fifth_bits(b + 2)) - 16, d, numbers);
  store_scaled((high_nibbles(b + 6) | fifth_bits(b + 4)) - 16, d, numbers + 16);
}

TILEWORK_BLOCK(kQ51) {
  const float d = half_at(b);
  const float m = half_at(b + 2);
  store_scaled(low_nibbles(b + 8) | fifth_bits(b + 4), d, m, numbers);
  store_scaled(high_nibbles(b + 8) | fifth_bits(b + 6), d, m, numbers + 16);
}

TILEWORK_BLOCK(kQ80) {
  const float d = half_at(b);
  store_scaled(vector_at<Codes16>(b + 2), d, numbers);
  store_scaled(vector_at<Codes16>(b + 18), d, numbers + 16);
}

// Codes of 2 bits, the 16 numbered `group` of 256 in 64 bytes: a byte has four codes of stride 32.
TILEWORK_INLINE_KERNEL Codes16 pair_codes(const uint8_t* at, int group) {
  return bits_at(at + 32 * (group / 8) + 16 * (group % 2), group / 2 % 4 * 2, 3);
}

TILEWORK_BLOCK(kQ2K) {
  const float d = half_at(b + 80);
  const float m = half_at(b + 82);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(b[group] & 15);
    const float offset = m * static_cast<float>(b[group] >> 4);
    store_scaled(pair_codes(b + 16, group), scale, -offset, numbers + 16 * group);
  }
}

TILEWORK_BLOCK(kQ3K) {
  const float d = half_at(b + 108);
  for (int group = 0; group < 16; ++group) {
    // A set bit means that nothing is subtracted.
    const Codes16 kept = bits_at(b + 16 * (group % 2), group / 2, 1) * 4;
    const float scale = d * static_cast<float>(q3_k_scale(b + 96, group));
    store_scaled(pair_codes(b + 32, group) + kept - 4, scale, numbers + 16 * group);
  }
}

TILEWORK_BLOCK(kQ4K) {
  const float d = half_at(b);
  const float m = half_at(b + 2);
  for (int group = 0; group < 8; ++group) {
    const float scale = d * static_cast<float>(k_scale(b + 4, group));
    const float offset = -(m * static_cast<float>(k_offset(b + 4, group)));
    for (int half = 0; half < 2; ++half) {
      const Codes16 codes = bits_at(b + 16 + 32 * (group / 2) + 16 * half, group % 2 * 4, 15);
      store_scaled(codes, scale, offset, numbers + 32 * group + 16 * half);
    }
  }
}

TILEWORK_BLOCK(kQ5K) {
  const float d = half_at(b);
  const float m = half_at(b + 2);
  for (int group = 0; group < 8; ++group) {
    const float scale = d * static_cast<float>(k_scale(b + 4, group));
    const float offset = -(m * static_cast<float>(k_offset(b + 4, group)));
    for (int half = 0; half < 2; ++half) {
      const Codes16 low = bits_at(b + 48 + 32 * (group / 2) + 16 * half, group % 2 * 4, 15);
      const Codes16 high = bits_at(b + 16 + 16 * half, group, 1) * 16;
      store_scaled(low | high, scale, offset, numbers + 32 * group + 16 * half);
    }
  }
}

TILEWORK_BLOCK(kQ6K) {
  const float d = half_at(b + 208);
  for (int group = 0; group < 16; ++group) {
    const int half = group / 8;
    const int part = group % 8;
    const Codes16 low = bits_at(b + 64 * half + 16 * (part % 4), part / 4 * 4, 15);
    const Codes16 high = bits_at(b + 128 + 32 * half + 16 * (part % 2), part / 2 * 2, 3) * 16;
    const float scale = d * static_cast<float>(static_cast<int8_t>(b[192 + group]));
    store_scaled((low | high) - 32, scale, numbers + 16 * group);
  }
}

TILEWORK_BLOCK(kQ8K) {
  const auto d = number_at<float>(b);
  for (int i = 0; i < 256; i += 16) store_scaled(vector_at<Codes16>(b + 4 + i), d, numbers + i);
}

TILEWORK_BLOCK(kIq4Nl) {
  const float d = half_at(b);
  store_scaled(look_up(kIq4Values, low_nibbles(b + 2)), d, numbers);
  store_scaled(look_up(kIq4Values, high_nibbles(b + 2)), d, numbers + 16);
}

TILEWORK_BLOCK(kIq4Xs) {
  const float d = half_at(b);
  for (int group = 0; group < 8; ++group) {
    const float scale = d * static_cast<float>(iq4_xs_scale(b, group));
    const uint8_t* const bytes = b + 8 + 16 * group;
    store_scaled(look_up(kIq4Values, low_nibbles(bytes)), scale, numbers + 32 * group);
    store_scaled(look_up(kIq4Values, high_nibbles(bytes)), scale, numbers + 32 * group + 16);
  }
}

// The digits of bytes in base 3 by their power of 3, less 1. A byte is a fraction of 256, whose digit is the
// whole part of three times it: 0 below 256 / 3, 2 from 512 / 3 on. A true comparison is -1.
TILEWORK_INLINE_KERNEL Codes16 trits(const uint8_t* at, uint8_t power) {
  const Bytes16 fractions = vector_at<Bytes16>(at) * power;
  return -1 - (fractions > 85) - (fractions > 170);
}

TILEWORK_BLOCK(kTq10) {
  constexpr uint8_t kPowers[] = {1, 3, 9, 27, 81};
  const float d = half_at(b + 52);
  for (int digit = 0; digit < 5; ++digit) {
    store_scaled(trits(b, kPowers[digit]), d, numbers + 32 * digit);
    store_scaled(trits(b + 16, kPowers[digit]), d, numbers + 32 * digit + 16);
    store_scaled(trits(b + 32, kPowers[digit]), d, numbers + 160 + 16 * digit);
  }
  // The last 4 bytes have four digits each.
  const uint32_t bytes = u32_at(b + 48);
  const uint64_t twice = bytes | static_cast<uint64_t>(bytes) << 32;
  constexpr Bytes16 kPowersOf4 = {1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27};
  const Bytes16 fractions = reinterpret_cast<Bytes16>(codes_of(twice, twice)) * kPowersOf4;
  store_scaled(-1 - (fractions > 85) - (fractions > 170), d, numbers + 240);
}

TILEWORK_BLOCK(kTq20) {
  const float d = half_at(b + 64);
  for (int group = 0; group < 16; ++group) store_scaled(pair_codes(b, group) - 1, d, numbers + 16 * group);
}

TILEWORK_BLOCK(kMxfp4) {
  const float d = power_of_two(b[0]);
  store_scaled(look_up(kFp4Values, low_nibbles(b + 1)), d, numbers);
  store_scaled(look_up(kFp4Values, high_nibbles(b + 1)), d, numbers + 16);
}

TILEWORK_BLOCK(kNvfp4) {
  for (int group = 0; group < 4; ++group) {
    const auto bytes = number_at<uint64_t>(b + 4 + 8 * group);
    constexpr uint64_t kNibbles = kOnes * 15;
    const Codes16 codes = codes_of(bytes & kNibbles, bytes >> 4 & kNibbles);
    store_scaled(look_up(kFp4Values, codes), nvfp4_scale(b[group]), numbers + 16 * group);
  }
}

TILEWORK_BLOCK(kQ10) {
  const float d = half_at(b);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* const bits = b + 2 + 2 * group;
    // 1 where the bit is set, else -1.
    store_scaled(~codes_of(kByteMasks[bits[0]], kByteMasks[bits[1]]) | 1, d, numbers + 16 * group);
  }
}

// Of each byte its four codes of 2 bits as four bytes, the first from the lowest bits.
constexpr std::array<uint32_t, 256> kPairBytes = [] {
  std::array<uint32_t, 256> codes{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (uint32_t i = 0; i < 4; ++i) codes[byte] |= (byte >> 2 * i & 3) << 8 * i;
  }
  return codes;
}();

TILEWORK_BLOCK(kQ20) {
  const float d = half_at(b);
  for (int group = 0; group < 4; ++group) {
    const uint8_t* const bytes = b + 2 + 4 * group;
    const auto eight = [&](int i) {
      return kPairBytes[bytes[i]] | static_cast<uint64_t>(kPairBytes[bytes[i + 1]]) << 32;
    };
    store_scaled(codes_of(eight(0), eight(2)) - 1, d, numbers + 16 * group);
  }
}

TILEWORK_BLOCK(kIq2Xxs) {
  const auto& table = vector_tables().iq2_xxs;
  const float d = half_at(b);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* const part = b + 2 + 8 * group;
    const uint32_t word = u32_at(part + 4);
    const float scale = d * (0.5F + static_cast<float>(word >> 28)) * 0.25F;
    const auto eight = [&](int k) { return with_signs(table[part[k]], kSignMasks[word >> 7 * k & 127]); };
    store_scaled(codes_of(eight(0), eight(1)), scale, numbers + 32 * group);
    store_scaled(codes_of(eight(2), eight(3)), scale, numbers + 32 * group + 16);
  }
}

// Of iq2_xs and iq2_s: the scale of the 16 elements `group`.
TILEWORK_INLINE_KERNEL float iq2_scale(float d, const uint8_t* scales, int group) {
  return d * (0.5F + static_cast<float>(scales[group / 2] >> 4 * (group % 2) & 15)) * 0.25F;
}

TILEWORK_BLOCK(kIq2Xs) {
  const auto& table = vector_tables().iq2_xs;
  const float d = half_at(b);
  for (int group = 0; group < 16; ++group) {
    const auto eight = [&](int i) {
      const uint16_t code = u16_at(b + 2 + 4 * group + 2 * i);
      return with_signs(table[code & 511], kSignMasks[code >> 9]);
    };
    store_scaled(codes_of(eight(0), eight(1)), iq2_scale(d, b + 66, group), numbers + 16 * group);
  }
}

TILEWORK_BLOCK(kIq2S) {
  const auto& table = vector_tables().iq2_s;
  const float d = half_at(b);
  for (int group = 0; group < 16; ++group) {
    const auto eight = [&](int i) {
      const int k = 2 * group + i;
      const auto code = static_cast<size_t>(b[2 + k] | (b[66 + k / 4] >> 2 * (k % 4) & 3) << 8);
      return with_signs(table[code], kByteMasks[b[34 + k]]);
    };
    store_scaled(codes_of(eight(0), eight(1)), iq2_scale(d, b + 74, group), numbers + 16 * group);
  }
}

TILEWORK_BLOCK(kIq3Xxs) {
  const auto& table = vector_tables().iq3_xxs;
  const float d = half_at(b);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* const part = b + 2 + 8 * group;
    const uint32_t word = u32_at(b + 66 + 4 * group);
    const float scale = d * (0.5F + static_cast<float>(word >> 28)) * 0.5F;
    const auto eight = [&](int k) {
      const uint64_t vector = table[part[2 * k]] | static_cast<uint64_t>(table[part[2 * k + 1]]) << 32;
      return with_signs(vector, kSignMasks[word >> 7 * k & 127]);
    };
    store_scaled(codes_of(eight(0), eight(1)), scale, numbers + 32 * group);
    store_scaled(codes_of(eight(2), eight(3)), scale, numbers + 32 * group + 16);
  }
}

TILEWORK_BLOCK(kIq3S) {
  const auto& table = vector_tables().iq3_s;
  const float d = half_at(b);
  for (int group = 0; group < 16; ++group) {
    const auto eight = [&](int i) {
      const int k = 2 * group + i;
      const int high = b[66 + k / 4] >> 2 * (k % 4);
      const auto first = static_cast<size_t>(b[2 + 2 * k] | (high & 1) << 8);
      const auto second = static_cast<size_t>(b[3 + 2 * k] | (high & 2) << 7);
      return with_signs(table[first] | static_cast<uint64_t>(table[second]) << 32, kByteMasks[b[74 + k]]);
    };
    const int code = b[106 + group / 4] >> 4 * (group / 2 % 2) & 15;
    store_scaled(codes_of(eight(0), eight(1)), d * static_cast<float>(1 + 2 * code), numbers + 16 * group);
  }
}

// The sum of component and delta is a multiple of 1/8, so codes are eight times the sum, and scales an
// eighth.
TILEWORK_BLOCK(kIq1S) {
  const auto& table = vector_tables().iq1;
  const float d = half_at(b);
  for (int group = 0; group < 8; ++group) {
    const uint16_t word = u16_at(b + 34 + 2 * group);
    const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1) * 0.125F;
    const auto eight = [&](int k) {
      const auto code = static_cast<size_t>(b[2 + 4 * group + k] | (word >> 3 * k & 7) << 8);
      return iq1_codes(table[code], word >> 15 == 1);
    };
    store_scaled(codes_of(eight(0), eight(1)), scale, numbers + 32 * group);
    store_scaled(codes_of(eight(2), eight(3)), scale, numbers + 32 * group + 16);
  }
}

TILEWORK_BLOCK(kIq1M) {
  const auto& table = vector_tables().iq1;
  const float d = iq1_m_half(b);
  for (int group = 0; group < 16; ++group) {
    const int nibbles = b[32 + group];
    const auto code = [&](int i) {
      return static_cast<size_t>(b[2 * group + i] | (nibbles >> 4 * i & 7) << 8);
    };
    const uint64_t first = iq1_codes(table[code(0)], (nibbles & 8) != 0);
    const uint64_t second = iq1_codes(table[code(1)], (nibbles & 128) != 0);
    const int three = u16_at(b + 48 + 2 * (group / 4)) >> 3 * (group % 4) & 7;
    store_scaled(codes_of(first, second), d * static_cast<float>(2 * three + 1) * 0.125F,
                 numbers + 16 * group);
  }
}

#undef TILEWORK_BLOCK
#undef TILEWORK_INLINE_KERNEL

template <BlockType type>
void run(const uint8_t* blocks, int64_t count, float* numbers) {
  constexpr BlockTypeInfo kInfo = info_of(type);
  for (int64_t block = 0; block < count; ++block) {
    dequantize<type>(blocks + block * kInfo.bytes, numbers + block * kInfo.elements);
  }
}

constexpr Dequantize kRuns[] = {
#define TILEWORK_BLOCK_TYPE(enumerator, name, elements, bytes) run<BlockType::enumerator>,
#include "facts/block_types.def"
#undef TILEWORK_BLOCK_TYPE
};

}  // namespace
}  // namespace tilework
