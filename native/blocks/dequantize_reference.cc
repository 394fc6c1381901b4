// The definition of each block type: the number of one element, by the operations and in the order that the
// package gguf has.
#include "blocks/block_fields.h"
#include "blocks/dequantize.h"
#include "blocks/vector_tables.h"

namespace tilework {
namespace {

// Nibble `i` of 32 in 16 bytes: the lower nibbles come first.
int nibble(const uint8_t* bytes, int i) { return bytes[i % 16] >> 4 * (i / 16) & 15; }

// Code `i` of 256 in 64 bytes, 2 bits each: each half has four codes of stride 32 in a byte.
int pair_code(const uint8_t* bytes, int i) { return bytes[32 * (i / 128) + i % 32] >> 2 * (i / 32 % 4) & 3; }

int bit(const uint8_t* bytes, int i) { return bytes[i / 8] >> i % 8 & 1; }

float component(uint64_t vector, int i) { return static_cast<int8_t>(vector >> 8 * i); }

float sign(bool is_negative) { return is_negative ? -1.0F : 1.0F; }

// Seven signs are stored; the eighth makes the number of minus signs even.
bool is_negative_of_7(uint32_t signs, int i) {
  return (i < 7 ? signs >> i & 1 : std::popcount(signs) & 1) == 1;
}

template <BlockType type>
float element(const uint8_t* block, int i);

#define TILEWORK_ELEMENT(type) \
  template <>                  \
  float element<BlockType::type>(const uint8_t* b, int i)

TILEWORK_ELEMENT(kQ40) { return half_at(b) * static_cast<float>(nibble(b + 2, i) - 8); }

TILEWORK_ELEMENT(kQ41) { return half_at(b) * static_cast<float>(nibble(b + 4, i)) + half_at(b + 2); }

TILEWORK_ELEMENT(kQ50) {
  const int code = nibble(b + 6, i) | bit(b + 2, i) << 4;
  return half_at(b) * static_cast<float>(code - 16);
}

TILEWORK_ELEMENT(kQ51) {
  const int code = nibble(b + 8, i) | bit(b + 4, i) << 4;
  return half_at(b) * static_cast<float>(code) + half_at(b + 2);
}

TILEWORK_ELEMENT(kQ80) { return static_cast<float>(static_cast<int8_t>(b[2 + i])) * half_at(b); }

TILEWORK_ELEMENT(kQ2K) {
  const float scale = half_at(b + 80) * static_cast<float>(b[i / 16] & 15);
  const float offset = half_at(b + 82) * static_cast<float>(b[i / 16] >> 4);
  return scale * static_cast<float>(pair_code(b + 16, i)) - offset;
}

TILEWORK_ELEMENT(kQ3K) {
  // A set bit means that nothing is subtracted.
  const int code = pair_code(b + 32, i) - (b[i % 32] >> i / 32 & 1 ? 0 : 4);
  return (half_at(b + 108) * static_cast<float>(q3_k_scale(b + 96, i / 16))) * static_cast<float>(code);
}

// Of q4_k and q5_k.
float scaled_k(const uint8_t* b, int i, int code) {
  const float scale = half_at(b) * static_cast<float>(k_scale(b + 4, i / 32));
  const float offset = half_at(b + 2) * static_cast<float>(k_offset(b + 4, i / 32));
  return scale * static_cast<float>(code) - offset;
}

TILEWORK_ELEMENT(kQ4K) { return scaled_k(b, i, b[16 + 32 * (i / 64) + i % 32] >> 4 * (i / 32 % 2) & 15); }

TILEWORK_ELEMENT(kQ5K) {
  const int low = b[48 + 32 * (i / 64) + i % 32] >> 4 * (i / 32 % 2) & 15;
  return scaled_k(b, i, low | (b[16 + i % 32] >> i / 32 & 1) << 4);
}

TILEWORK_ELEMENT(kQ6K) {
  const int half = i / 128;
  const int r = i % 128;
  const int low = b[64 * half + r % 64] >> 4 * (r / 64) & 15;
  const int high = b[128 + 32 * half + r % 32] >> 2 * (r / 32) & 3;
  const float scale = half_at(b + 208) * static_cast<float>(static_cast<int8_t>(b[192 + i / 16]));
  return scale * static_cast<float>((low | high << 4) - 32);
}

TILEWORK_ELEMENT(kQ8K) { return number_at<float>(b) * static_cast<float>(static_cast<int8_t>(b[4 + i])); }

TILEWORK_ELEMENT(kIq4Nl) { return half_at(b) * static_cast<float>(kIq4Values[nibble(b + 2, i)]); }

TILEWORK_ELEMENT(kIq4Xs) {
  const float scale = half_at(b) * static_cast<float>(iq4_xs_scale(b, i / 32));
  return scale * static_cast<float>(kIq4Values[nibble(b + 8 + 16 * (i / 32), i % 32)]);
}

TILEWORK_ELEMENT(kTq10) {
  const int byte = i < 160 ? i % 32 : i < 240 ? 32 + (i - 160) % 16 : 48 + (i - 240) % 4;
  const int power = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
  constexpr int kPowers[] = {1, 3, 9, 27, 81};
  const int digit = ((b[byte] * kPowers[power]) & 255) * 3 >> 8;
  return half_at(b + 52) * static_cast<float>(digit - 1);
}

TILEWORK_ELEMENT(kTq20) { return half_at(b + 64) * static_cast<float>(pair_code(b, i) - 1); }

TILEWORK_ELEMENT(kMxfp4) { return power_of_two(b[0]) * static_cast<float>(kFp4Values[nibble(b + 1, i)]); }

TILEWORK_ELEMENT(kNvfp4) {
  const int group = i / 16;
  const int code = b[4 + 8 * group + i % 8] >> 4 * (i % 16 / 8) & 15;
  return nvfp4_scale(b[group]) * static_cast<float>(kFp4Values[code]);
}

TILEWORK_ELEMENT(kQ10) { return bit(b + 2, i) == 1 ? half_at(b) : -half_at(b); }

TILEWORK_ELEMENT(kQ20) { return static_cast<float>((b[2 + i / 4] >> 2 * (i % 4) & 3) - 1) * half_at(b); }

TILEWORK_ELEMENT(kIq2Xxs) {
  const uint8_t* group = b + 2 + 8 * (i / 32);
  const uint32_t word = u32_at(group + 4);
  const float scale = half_at(b) * (0.5F + static_cast<float>(word >> 28)) * 0.25F;
  const int k = i / 8 % 4;
  const float number = component(vector_tables().iq2_xxs[group[k]], i % 8);
  return scale * number * sign(is_negative_of_7(word >> 7 * k & 127, i % 8));
}

TILEWORK_ELEMENT(kIq2Xs) {
  const uint16_t code = u16_at(b + 2 + 2 * (i / 8));
  const int nibble_of_16 = b[66 + i / 32] >> 4 * (i / 16 % 2) & 15;
  const float scale = half_at(b) * (0.5F + static_cast<float>(nibble_of_16)) * 0.25F;
  const float number = component(vector_tables().iq2_xs[code & 511], i % 8);
  return scale * number * sign(is_negative_of_7(code >> 9, i % 8));
}

TILEWORK_ELEMENT(kIq2S) {
  const int k = i / 8;
  const int nibble_of_16 = b[74 + i / 32] >> 4 * (i / 16 % 2) & 15;
  const float scale = half_at(b) * (0.5F + static_cast<float>(nibble_of_16)) * 0.25F;
  const int code = b[2 + k] | (b[66 + k / 4] >> 2 * (k % 4) & 3) << 8;
  return scale * component(vector_tables().iq2_s[code], i % 8) * sign(bit(b + 34, i) == 1);
}

TILEWORK_ELEMENT(kIq3Xxs) {
  const uint32_t word = u32_at(b + 66 + 4 * (i / 32));
  const float scale = half_at(b) * (0.5F + static_cast<float>(word >> 28)) * 0.5F;
  const float number = component(vector_tables().iq3_xxs[b[2 + i / 4]], i % 4);
  return scale * number * sign(is_negative_of_7(word >> 7 * (i / 8 % 4) & 127, i % 8));
}

TILEWORK_ELEMENT(kIq3S) {
  const int k = i / 4;
  const int nibble_of_32 = b[106 + i / 64] >> 4 * (i / 32 % 2) & 15;
  const float scale = half_at(b) * static_cast<float>(1 + 2 * nibble_of_32);
  const int code = b[2 + k] | bit(b + 66, k) << 8;
  return scale * component(vector_tables().iq3_s[code], i % 4) * sign(bit(b + 74, i) == 1);
}

// Of iq1_s and iq1_m. The sum comes before the product: an infinite scale times 0 would be NaN.
float iq1_number(float scale, int code, int i, bool is_negative) {
  return scale * (component(vector_tables().iq1[code], i % 8) + (is_negative ? -0.125F : 0.125F));
}

TILEWORK_ELEMENT(kIq1S) {
  const int k = i / 8;
  const uint16_t word = u16_at(b + 34 + 2 * (i / 32));
  const float scale = half_at(b) * static_cast<float>(2 * (word >> 12 & 7) + 1);
  return iq1_number(scale, b[2 + k] | (word >> 3 * (k % 4) & 7) << 8, i, word >> 15 == 1);
}

TILEWORK_ELEMENT(kIq1M) {
  const int k = i / 8;
  const int high = b[32 + k / 2] >> 4 * (k % 2) & 15;
  const int code = u16_at(b + 48 + 2 * (i / 64)) >> 3 * (i / 16 % 4) & 7;
  const float scale = iq1_m_half(b) * static_cast<float>(2 * code + 1);
  return iq1_number(scale, b[k] | (high & 7) << 8, i, high >> 3 == 1);
}

#undef TILEWORK_ELEMENT

template <BlockType type>
void run(const uint8_t* blocks, int64_t count, float* numbers) {
  constexpr BlockTypeInfo kInfo = info_of(type);
  for (int64_t block = 0; block < count; ++block) {
    for (int i = 0; i < kInfo.elements; ++i) {
      numbers[block * kInfo.elements + i] = element<type>(blocks + block * kInfo.bytes, i);
    }
  }
}

constexpr Dequantize kRuns[] = {
#define TILEWORK_BLOCK_TYPE(enumerator, name, elements, bytes) run<BlockType::enumerator>,
#include "facts/block_types.def"
#undef TILEWORK_BLOCK_TYPE
};

}  // namespace

Dequantize dequantize_reference(BlockType type) { return kRuns[static_cast<uint8_t>(type)]; }

}  // namespace tilework
