// The leaves of cast_tiles.h for which AVX-512 has better instructions: float32 to bfloat16, with the
// register blocks of AVX2, and to bytes, four rows at a time. Compiled for AVX-512, so all but the function
// is internal.
#include "cpu/features.h"
#include "dtype/lanes_avx2.h"
#include "reorder/cast/cast_panel_avx2.h"
#include "reorder/cast/cast_tiles.h"
#include "reorder/leaf/block_transpose.h"
#include "reorder/leaf/blocks.h"
#include "reorder/leaf/registers_avx512.h"

namespace tilework {
namespace {

struct Bfloat16Load {
  using Unit = uint16_t;
  static constexpr int64_t kSourceSize = 4;
  TILEWORK_INLINE static __m256i whole(const uint8_t* at) { return halves(at, at + 32); }
  TILEWORK_INLINE static __m256i halves(const uint8_t* low, const uint8_t* high) {
    // The instruction makes zeros of denormal numbers, and NaN keep their payload.
    constexpr int kNanOrDenormal = 0xa1;
    const __m256 first = floats_of(load32(low));
    const __m256 second = floats_of(load32(high));
    const __mmask8 special =
        _mm256_fpclass_ps_mask(first, kNanOrDenormal) | _mm256_fpclass_ps_mask(second, kNanOrDenormal);
    if (__builtin_expect(special != 0, 0))
      return upper_halves(round_bfloat16_or_nan(first), round_bfloat16_or_nan(second));
    return reinterpret_cast<__m256i>(_mm256_cvtne2ps_pbh(second, first));
  }
};

// Float32 to bytes: four rows become one register of bytes, lane by lane.
template <Dtype to>
class Quarters {
 public:
  // Bytes of row a, b, c, d in each lane: columns 4 * lane and the next three.
  TILEWORK_INLINE __m512i encode(const uint8_t* a, const uint8_t* b, const uint8_t* c, const uint8_t* d) {
    const __m512i low = _mm512_packs_epi32(whole(a), whole(b));
    const __m512i high = _mm512_packs_epi32(whole(c), whole(d));
    least_ = _mm512_min_epi16(least_, _mm512_min_epi16(low, high));
    return to == Dtype::kInt8 ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  }
  // NaN, or a value that does not fit an int32: the conversion gives the smallest one.
  TILEWORK_INLINE bool has_special() const {
    return _mm512_cmpeq_epi16_mask(least_, _mm512_set1_epi16(INT16_MIN)) != 0;
  }

 private:
  TILEWORK_INLINE static __m512i whole(const uint8_t* at) { return _mm512_cvttps_epi32(_mm512_loadu_ps(at)); }
  __m512i least_ = _mm512_setzero_si512();
};

// Blocks with special values are cast by AVX2.
template <Dtype to>
using SpecialBytes = NarrowBlock<uint8_t, QuarteringLoad<to>>;

// Columns of a line.
template <Dtype to>
struct ByteLines : LineStores {
  using Unit = uint8_t;
  static constexpr int64_t kSourceSize = 4;
  static constexpr int64_t kRows = 64;
  static constexpr int64_t kColumns = 16;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    Quarters<to> quarters;
    __m512i rows[16];
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) {
      rows[r] = quarters.encode(source + row_at(r), source + row_at(r + 16), source + row_at(r + 32),
                                source + row_at(r + 48));
    }
    if (__builtin_expect(quarters.has_special(), 0)) {
      for (int r = 0; r < 64; r += 16)
        SpecialBytes<to>::transpose(source, row_at.from(r), destination + r, column_at);
      return;
    }
    // To rows 16 * k to 16 * k + 15 of column 4 * lane + j in register 4 * k + j.
    for (int done = 1; done < 16; done *= 2) step<1>(rows);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      __m512i lines[4] = {rows[j], rows[4 + j], rows[8 + j], rows[12 + j]};
      transpose_lanes(lines);
#pragma GCC unroll 4
      for (int lane = 0; lane < 4; ++lane) store64(destination + column_at(4 * lane + j), lines[lane]);
    }
  }
};

// Columns of a lane.
template <Dtype to>
struct ByteLanes : LineStores {
  using Unit = uint8_t;
  static constexpr int64_t kSourceSize = 4;
  static constexpr int64_t kRows = 16;
  static constexpr int64_t kColumns = 16;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    Quarters<to> quarters;
    __m512i rows[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      rows[r] = quarters.encode(source + row_at(r), source + row_at(r + 4), source + row_at(r + 8),
                                source + row_at(r + 12));
    }
    if (__builtin_expect(quarters.has_special(), 0))
      return SpecialBytes<to>::transpose(source, row_at, destination, column_at);
    // To rows 4 * k to 4 * k + 3 of columns 4 * lane and the next three in register k.
    step<1>(rows);
    step<1>(rows);
    // To column 4 * lane + k in register k, and then to columns 4 * k to 4 * k + 3.
    step<4>(rows);
    step<4>(rows);
    transpose_lanes(rows);
    bool are_neighbours = false;
    if constexpr (requires { requires Columns::kIsEven; }) are_neighbours = column_at(1) == column_at(0) + 16;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      if (are_neighbours) {
        store64(destination + column_at(4 * k), rows[k]);
        continue;
      }
      store16(destination + column_at(4 * k), _mm512_castsi512_si128(rows[k]));
      store16(destination + column_at(4 * k + 1), _mm512_extracti32x4_epi32(rows[k], 1));
      store16(destination + column_at(4 * k + 2), _mm512_extracti32x4_epi32(rows[k], 2));
      store16(destination + column_at(4 * k + 3), _mm512_extracti32x4_epi32(rows[k], 3));
    }
  }
};

template <Dtype to>
constexpr CastLeaf kByteLeaf =
    kLeafOf<QuarteringLoad<to>, ByteLines<to>, ByteLanes<to>, HalfBlock<uint8_t, QuarteringLoad<to>>>;

}  // namespace

CastLeaf cast_leaf_avx512(Dtype from, Dtype to) {
  if (from != Dtype::kFloat32) return {};
  switch (to) {
    case Dtype::kBfloat16:
      return cpu_has("avx512bf16") ? kLeaf<Bfloat16Load> : CastLeaf{};
    case Dtype::kInt8:
      return kByteLeaf<Dtype::kInt8>;
    case Dtype::kUint8:
      return kByteLeaf<Dtype::kUint8>;
    default:
      return {};
  }
}

}  // namespace tilework
