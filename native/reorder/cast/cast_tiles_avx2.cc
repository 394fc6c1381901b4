// The leaves of cast_tiles.h with AVX2, F16C and FMA: the register blocks of leaf/blocks.h with rows that are
// cast while they are loaded. Only this file and those of casts are compiled for them.
#include <cstring>
#include <type_traits>

#include "dtype/lanes_avx2.h"
#include "reorder/cast/cast_panel_avx2.h"
#include "reorder/cast/cast_tiles.h"
#include "reorder/leaf/block_transpose.h"
#include "reorder/leaf/blocks.h"
#include "reorder/leaf/panel_steps.h"
#include "reorder/leaf/streamed_blocks.h"

namespace tilework {
namespace {

// Elements of 8 or 16 bits to float32.
template <Dtype from, int kSize>
struct WideningLoad {
  using Unit = uint32_t;
  static constexpr int64_t kSourceSize = kSize;
  TILEWORK_INLINE static __m256i whole(const uint8_t* at) {
    return bits_of(decode_lanes<from>(kSize == 2 ? load16(at) : load8(at)));
  }
  TILEWORK_INLINE static __m256i halves(const uint8_t* low, const uint8_t* high) {
    const __m128i codes =
        kSize == 2 ? _mm_unpacklo_epi64(four(low), four(high)) : _mm_unpacklo_epi32(four(low), four(high));
    return bits_of(decode_lanes<from>(codes));
  }

 private:
  // Four elements.
  TILEWORK_INLINE static __m128i four(const uint8_t* at) {
    if constexpr (kSize == 2) return load8(at);
    int32_t codes = 0;
    std::memcpy(&codes, at, sizeof(codes));
    return _mm_cvtsi32_si128(codes);
  }
};

// Float32 to 16 bits.
template <Dtype to>
struct HalvingLoad {
  using Unit = uint16_t;
  static constexpr int64_t kSourceSize = 4;
  TILEWORK_INLINE static __m256i whole(const uint8_t* at) { return halves(at, at + 32); }
  TILEWORK_INLINE static __m256i halves(const uint8_t* low, const uint8_t* high) {
    const __m256 first = floats_of(load32(low));
    const __m256 second = floats_of(load32(high));
    if constexpr (to == Dtype::kBfloat16) {
      const __m256 has_nan = _mm256_cmp_ps(first, second, _CMP_UNORD_Q);
      if (__builtin_expect(_mm256_movemask_ps(has_nan) != 0, 0))
        return upper_halves(round_bfloat16_or_nan(first), round_bfloat16_or_nan(second));
      return upper_halves(round_bfloat16(bits_of(first)), round_bfloat16(bits_of(second)));
    } else {
      return encode_words<to>(first, second);
    }
  }
};

// Bytes to float32: transposed as bytes, and cast when a column is complete.
template <Dtype from>
struct WideningColumns : LineStores {
  using Unit = uint32_t;
  static constexpr int64_t kSourceSize = 1;

 protected:
  TILEWORK_INLINE static void put_sixteen(uint8_t* at, __m128i codes) {
    store32(at, bits_of(decode_lanes<from>(codes)));
    store32(at + 32, bits_of(decode_lanes<from>(_mm_srli_si128(codes, 8))));
  }
};

template <Dtype from>
struct TallBlock : WideningColumns<from> {
  static constexpr int64_t kRows = 32;
  static constexpr int64_t kColumns = 16;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    __m256i rows[16];
    for (int r = 0; r < 16; ++r) rows[r] = load_lanes(source + row_at(r), source + row_at(r + 16));
    transpose_lanes<1>(rows);
    for (int c = 0; c < 16; ++c) {
      uint8_t* column = destination + column_at(c);
      WideningColumns<from>::put_sixteen(column, _mm256_castsi256_si128(rows[c]));
      WideningColumns<from>::put_sixteen(column + 64, _mm256_extracti128_si256(rows[c], 1));
    }
  }
};

template <Dtype from>
struct FlatBlock : WideningColumns<from> {
  static constexpr int64_t kRows = 16;
  static constexpr int64_t kColumns = 32;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    __m256i rows[16];
    for (int r = 0; r < 16; ++r) rows[r] = load32(source + row_at(r));
    transpose_lanes<1>(rows);
    for (int c = 0; c < 16; ++c) {
      WideningColumns<from>::put_sixteen(destination + column_at(c), _mm256_castsi256_si128(rows[c]));
      WideningColumns<from>::put_sixteen(destination + column_at(c + 16),
                                         _mm256_extracti128_si256(rows[c], 1));
    }
  }
};

// Float32 to bfloat16: two rows become one of pairs, rounded as halves of 32-bit lanes, which are transposed.
struct PairedRows : LineStores {
  using Unit = uint16_t;
  static constexpr int64_t kSourceSize = 4;

 protected:
  // `load(r)` is row `r`; pairs are rows 2 * i and 2 * i + 1.
  template <int kCount, class Load>
  TILEWORK_INLINE static void load_pairs(__m256i (&pairs)[kCount], Load load) {
    __m256 has_nan = _mm256_setzero_ps();
    for (int i = 0; i < kCount; ++i) {
      const __m256i first = load(2 * i);
      const __m256i second = load(2 * i + 1);
      has_nan = _mm256_or_ps(has_nan, _mm256_cmp_ps(floats_of(first), floats_of(second), _CMP_UNORD_Q));
      pairs[i] = round(first, second);
    }
    if (__builtin_expect(_mm256_movemask_ps(has_nan) == 0, 1)) return;
    for (int i = 0; i < kCount; ++i) {
      pairs[i] = upper(round_bfloat16_or_nan(floats_of(load(2 * i))),
                       round_bfloat16_or_nan(floats_of(load(2 * i + 1))));
    }
  }

 private:
  TILEWORK_INLINE static __m256i upper(__m256i first, __m256i second) {
    return _mm256_blend_epi16(_mm256_srli_epi32(first, 16), second, 0xAA);
  }
  // To nearest even. The average of 16-bit lanes halves a sum of 17 bits, whose highest one is the carry.
  TILEWORK_INLINE static __m256i round(__m256i first, __m256i second) {
    const __m256i codes = upper(first, second);
    const __m256i rest = _mm256_blend_epi16(first, _mm256_slli_epi32(second, 16), 0xAA);
    const __m256i even = _mm256_and_si256(codes, _mm256_set1_epi16(1));
    const __m256i sum = _mm256_avg_epu16(rest, _mm256_or_si256(even, _mm256_set1_epi16(0x7ffe)));
    return _mm256_add_epi16(codes, _mm256_srli_epi16(sum, 15));
  }
};

// Columns of 32 bytes.
struct WidePairs : PairedRows {
  static constexpr int64_t kRows = 16;
  static constexpr int64_t kColumns = 4;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    __m256i pairs[4];
    load_pairs(pairs, [&](int r) { return load_lanes(source + row_at(r), source + row_at(r + 8)); });
    transpose_lanes<4>(pairs);
    for (int c = 0; c < 4; ++c) store32(destination + column_at(c), pairs[c]);
  }
};

// Columns of 16 bytes, and lines of the rows.
struct NarrowPairs : PairedRows {
  static constexpr int64_t kRows = 8;
  static constexpr int64_t kColumns = 16;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    for (int first = 0; first < kColumns; first += 8) {
      __m256i pairs[4];
      load_pairs(pairs, [&](int r) { return load32(source + row_at(r) + first * kSourceSize); });
      transpose_lanes<4>(pairs);
      for (int c = 0; c < 4; ++c) {
        store16(destination + column_at(first + c), _mm256_castsi256_si128(pairs[c]));
        store16(destination + column_at(first + c + 4), _mm256_extracti128_si256(pairs[c], 1));
      }
    }
  }
};

template <Dtype from>
constexpr CastLeaf kByteLeaf = kLeafOf<WideningLoad<from, 1>, TallBlock<from>, FlatBlock<from>,
                                       WideBlock<uint32_t, WideningLoad<from, 1>>>;

}  // namespace

CastLeaf cast_leaf_avx2(Dtype from, Dtype to) {
  if (to == Dtype::kFloat32) {
    switch (from) {
      case Dtype::kFloat16:
        return kLeaf<WideningLoad<Dtype::kFloat16, 2>>;
      case Dtype::kBfloat16:
        return kLeaf<WideningLoad<Dtype::kBfloat16, 2>>;
      case Dtype::kInt8:
        return kByteLeaf<Dtype::kInt8>;
      case Dtype::kUint8:
        return kByteLeaf<Dtype::kUint8>;
      default:
        return {};
    }
  }
  if (from != Dtype::kFloat32) return {};
  switch (to) {
    case Dtype::kFloat16:
      return kLeaf<HalvingLoad<Dtype::kFloat16>>;
    case Dtype::kBfloat16:
      return kLeafOf<HalvingLoad<Dtype::kBfloat16>, WidePairs, NarrowPairs,
                     HalfBlock<uint16_t, HalvingLoad<Dtype::kBfloat16>>>;
    case Dtype::kInt8:
      return kLeaf<QuarteringLoad<Dtype::kInt8>>;
    case Dtype::kUint8:
      return kLeaf<QuarteringLoad<Dtype::kUint8>>;
    default:
      return {};
  }
}

}  // namespace tilework
