// Tile transposes and copies with AVX2. This file alone is compiled for it, so it must not be entered on
// another processor, and must not define anything that others might link to: all of it but the kernels is
// internal.
//
// The unpack instructions work inside 16-byte lanes. A wide block puts row r in the low lane and row r + half
// in the high lane, so that after log2(rows / 2) steps each register holds one whole column of 32 bytes. A
// narrow block has columns of 16 bytes and puts two groups of columns in the lanes.
#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "reorder/channels.h"
#include "reorder/kernels.h"
#include "reorder/listed_transpose.h"
#include "reorder/nibble_transpose.h"
#include "reorder/odd_rows.h"
#include "reorder/run_copy.h"
#include "reorder/tile_kernel.h"

namespace tilework {
namespace {

__m128i load16(const uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }
__m256i load32(const uint8_t* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }
void store16(uint8_t* at, __m128i value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(at), value); }
void store32(uint8_t* at, __m256i value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), value); }

// 16 bytes in each lane.
__m256i load_lanes(const uint8_t* low, const uint8_t* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low)), load16(high), 1);
}

// The registers of a transpose are arrays in the source; they are registers only where all steps are inlined,
// which the compiler is not sure of for so much code.
#define TILEWORK_INLINE [[gnu::always_inline]] inline

// Interleaves units of `kSize` bytes of the low, or of the high, halves of the lanes.
template <int kSize>
TILEWORK_INLINE __m256i unpack_low(__m256i a, __m256i b) {
  if constexpr (kSize == 1) return _mm256_unpacklo_epi8(a, b);
  if constexpr (kSize == 2) return _mm256_unpacklo_epi16(a, b);
  if constexpr (kSize == 4) return _mm256_unpacklo_epi32(a, b);
  if constexpr (kSize == 8) return _mm256_unpacklo_epi64(a, b);
}

template <int kSize>
TILEWORK_INLINE __m256i unpack_high(__m256i a, __m256i b) {
  if constexpr (kSize == 1) return _mm256_unpackhi_epi8(a, b);
  if constexpr (kSize == 2) return _mm256_unpackhi_epi16(a, b);
  if constexpr (kSize == 4) return _mm256_unpackhi_epi32(a, b);
  if constexpr (kSize == 8) return _mm256_unpackhi_epi64(a, b);
}

// One step of a transpose: row r meets row r + half. Doing that log2(n) times, always with units of the same
// size, turns n rows of n units into n columns, in each lane for itself.
template <int kSize, int kCount>
TILEWORK_INLINE void step(__m256i (&rows)[kCount]) {
  __m256i next[kCount];
  for (int r = 0; r < kCount / 2; ++r) {
    next[2 * r] = unpack_low<kSize>(rows[r], rows[r + kCount / 2]);
    next[2 * r + 1] = unpack_high<kSize>(rows[r], rows[r + kCount / 2]);
  }
  for (int r = 0; r < kCount; ++r) rows[r] = next[r];
}

template <int kSize, int kCount>
TILEWORK_INLINE void transpose_lanes(__m256i (&rows)[kCount]) {
  static_assert(kSize * kCount == 16);
  for (int done = 1; done < kCount; done *= 2) step<kSize>(rows);
}

// The last `kKept` columns alone: each step that halves what is left of the columns has one half of the work.
template <int kSize, int kCount, int kKept>
TILEWORK_INLINE void transpose_last_lanes(const __m256i (&rows)[kCount], __m256i (&columns)[kKept]) {
  if constexpr (kCount == kKept) {
    for (int i = 0; i < kCount; ++i) columns[i] = rows[i];
    for (int done = 1; done < kKept; done *= 2) step<kSize>(columns);
  } else {
    __m256i high[kCount / 2];
    for (int i = 0; i < kCount / 2; ++i) high[i] = unpack_high<kSize>(rows[i], rows[i + kCount / 2]);
    transpose_last_lanes<kSize>(high, columns);
  }
}

}  // namespace
}  // namespace tilework

#include "reorder/channels_avx2.h"
#include "reorder/padded_pixels_avx2.h"
#include "reorder/streamed_blocks_avx2.h"
#include "reorder/streamed_lanes_avx2.h"

namespace tilework {
namespace {

// Streaming stores need aligned lines; others are written the usual way.
struct LineStores {
  static constexpr bool kMakesLines = false;
  static constexpr bool kLinesInRegisters = false;
  static constexpr bool kTransposesLast = false;
  TILEWORK_INLINE static void store_line(uint8_t* destination, const uint8_t* line, Stores stores) {
    const __m256i low = load32(line);
    const __m256i high = load32(line + 32);
    if (stores == Stores::kStreaming && reinterpret_cast<uintptr_t>(destination) % kLineBytes == 0) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(destination), low);
      _mm256_stream_si256(reinterpret_cast<__m256i*>(destination + 32), high);
    } else {
      store32(destination, low);
      store32(destination + 32, high);
    }
  }
};

// Columns of 32 bytes.
template <class T>
struct WideBlock : LineStores {
  using Unit = T;
  static constexpr int kCount = 16 / sizeof(T);
  static constexpr int64_t kRows = 2 * kCount;
  static constexpr int64_t kColumns = kCount;
  static constexpr bool kMakesLines = true;
  static constexpr bool kLinesInRegisters = kCount <= 8;
  static constexpr bool kTransposesLast = kCount >= 4;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    __m256i rows[kCount];
    load_columns(source, row_at, rows);
    for (int c = 0; c < kCount; ++c) store32(destination + column_at(c), rows[c]);
  }
  // The rows of the first half, and `kHigh` of the second, at places of their own; the others are zeros.
  template <int kHigh, class Rows, class Columns>
  TILEWORK_INLINE static void transpose_few_rows(const uint8_t* source, Rows row_at, Listed high_at,
                                                 uint8_t* destination, Columns column_at) {
    __m256i rows[kCount];
    for (int r = 0; r < kCount; ++r) {
      rows[r] = r < kHigh ? load_lanes(source + row_at(r), source + high_at(r))
                          : _mm256_zextsi128_si256(load16(source + row_at(r)));
    }
    transpose_lanes<sizeof(T)>(rows);
    for (int c = 0; c < kCount; ++c) store32(destination + column_at(c), rows[c]);
  }
  // The last `kKept` columns alone.
  template <int kKept, class Rows, class Columns>
  TILEWORK_INLINE static void transpose_last(const uint8_t* source, Rows row_at, uint8_t* destination,
                                             Columns column_at) {
    __m256i rows[kCount];
    __m256i columns[kKept];
    load_rows(source, row_at, rows);
    transpose_last_lanes<sizeof(T)>(rows, columns);
    for (int c = 0; c < kKept; ++c) store32(destination + column_at(kCount - kKept + c), columns[c]);
  }
  // Both halves of a line are written one behind the other: a line that is written in two goes is waited for
  // twice. Where the registers do not hold so many rows, the lines are put together in memory.
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose_lines(const uint8_t* source, Rows row_at, uint8_t* destination,
                                              Columns column_at) {
    if constexpr (!kLinesInRegisters) {
      alignas(kLineBytes) uint8_t lines[kCount * kLineBytes];
      transpose(source, row_at, lines, Spaced<kLineBytes>{});
      transpose(source, row_at.from(kRows), lines + 32, Spaced<kLineBytes>{});
      for (int c = 0; c < kCount; ++c) {
        const uint8_t* line = lines + c * kLineBytes;
        store32(destination + column_at(c), load32(line));
        store32(destination + column_at(c) + 32, load32(line + 32));
      }
    } else {
      __m256i low[kCount];
      __m256i high[kCount];
      load_columns(source, row_at, low);
      load_columns(source, row_at.from(kRows), high);
      for (int c = 0; c < kCount; ++c) {
        store32(destination + column_at(c), low[c]);
        store32(destination + column_at(c) + 32, high[c]);
      }
    }
  }

 private:
  template <class Rows>
  TILEWORK_INLINE static void load_rows(const uint8_t* source, Rows row_at, __m256i (&rows)[kCount]) {
    for (int r = 0; r < kCount; ++r) {
      rows[r] = load_lanes(source + row_at(r), source + row_at(r + kCount));
    }
  }
  template <class Rows>
  TILEWORK_INLINE static void load_columns(const uint8_t* source, Rows row_at, __m256i (&rows)[kCount]) {
    load_rows(source, row_at, rows);
    transpose_lanes<sizeof(T)>(rows);
  }
};

// Columns of 16 bytes.
template <class T>
struct NarrowBlock : LineStores {
  using Unit = T;
  static constexpr int kCount = 16 / sizeof(T);
  static constexpr int64_t kRows = kCount;
  static constexpr int64_t kColumns = 2 * kCount;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    __m256i rows[kCount];
    for (int r = 0; r < kCount; ++r) rows[r] = load32(source + row_at(r));
    transpose_lanes<sizeof(T)>(rows);
    for (int c = 0; c < kCount; ++c) {
      store16(destination + column_at(c), _mm256_castsi256_si128(rows[c]));
      store16(destination + column_at(c + kCount), _mm256_extracti128_si256(rows[c], 1));
    }
  }
};

// Columns of 8 bytes, two of which follow each other in each lane.
template <class T>
struct HalfBlock : LineStores {
  using Unit = T;
  static constexpr int kCount = 8 / sizeof(T);
  static constexpr int64_t kRows = kCount;
  static constexpr int64_t kColumns = 32 / sizeof(T);
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    __m256i rows[kCount];
    for (int r = 0; r < kCount; ++r) rows[r] = load32(source + row_at(r));
    interleave<sizeof(T)>(rows);
    for (int r = 0; r < kCount; ++r) {
      store_pair(destination, column_at, 2 * r, _mm256_castsi256_si128(rows[r]));
      store_pair(destination, column_at, kColumns / 2 + 2 * r, _mm256_extracti128_si256(rows[r], 1));
    }
  }

 private:
  template <class Columns>
  TILEWORK_INLINE static void store_pair(uint8_t* destination, Columns column_at, int64_t c, __m128i pair) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(destination + column_at(c)), pair);
    // One instruction all the same; the intrinsic for it wants an aligned place.
    const __m128d doubles = _mm_castsi128_pd(pair);
    const double high = _mm_cvtsd_f64(_mm_unpackhi_pd(doubles, doubles));
    std::memcpy(destination + column_at(c + 1), &high, sizeof(high));
  }
};

// Rows of 8 bytes, of which two make a lane.
template <class T>
struct ThinBlock : LineStores {
  using Unit = T;
  static constexpr int kCount = 8 / sizeof(T);
  static constexpr int64_t kRows = 32 / sizeof(T);
  static constexpr int64_t kColumns = kCount;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    __m256i rows[kCount];
    for (int i = 0; i < kCount; ++i) {
      rows[i] = _mm256_set_m128i(load_pair(source, row_at.from(kRows / 2 + 2 * i)),
                                 load_pair(source, row_at.from(2 * i)));
    }
    take_apart<sizeof(T)>(rows);
    for (int c = 0; c < kCount; ++c) store32(destination + column_at(c), rows[c]);
  }

 private:
  template <class Rows>
  TILEWORK_INLINE static __m128i load_pair(const uint8_t* source, Rows row_at) {
    int64_t low = 0;
    int64_t high = 0;
    std::memcpy(&low, source + row_at(0), sizeof(low));
    std::memcpy(&high, source + row_at(1), sizeof(high));
    return _mm_insert_epi64(_mm_cvtsi64_si128(low), high, 1);
  }
};

// Wider elements are moved one by one as well.
template <class T>
using HalfOrNone = std::conditional_t<sizeof(T) <= 4, HalfBlock<T>, void>;
template <class T>
using ThinOrNone = std::conditional_t<sizeof(T) <= 4, ThinBlock<T>, void>;

// Units of a whole lane.
struct LaneBlock : LineStores {
  using Unit = Unit128;
  static constexpr int64_t kRows = 2;
  static constexpr int64_t kColumns = 2;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const uint8_t* from = source + c * int64_t{sizeof(Unit)};
      store32(destination + column_at(c), load_lanes(from + row_at(0), from + row_at(1)));
    }
  }
};

// Ways of moving tiles that are no matter of blocks alone, the special ones first.
template <class T>
struct SpecialTiles : Channels<T, PixelsAvx2<T>> {
  static bool run(const Tile& tile) {
    if constexpr (sizeof(T) <= 4) {
      if (PaddedPixels<T>::run(tile) || StreamedBlocks<T>::run(tile)) return true;
      if (Channels<T, PixelsAvx2<T>>::run(tile)) return true;
      return OddRows<WideBlock<T>, NarrowBlock<T>, HalfBlock<T>>::run(tile);
    }
    return Channels<T, PixelsAvx2<T>>::run(tile);
  }
};

template <class T>
using Tiles = TileKernel<WideBlock<T>, NarrowBlock<T>, SpecialTiles<T>, HalfOrNone<T>, ThinOrNone<T>>;

struct Vector {
  static constexpr int64_t kBytes = 32;
  static void copy(uint8_t* destination, const uint8_t* source) { store32(destination, load32(source)); }
  static void copy_half(uint8_t* destination, const uint8_t* source) { store16(destination, load16(source)); }
  static void zero(uint8_t* destination) { store32(destination, _mm256_setzero_si256()); }
  static void zero_half(uint8_t* destination) { store16(destination, _mm_setzero_si128()); }
  static void stream_zero_half(uint8_t* destination) { put16(destination, _mm_setzero_si128(), true); }
  static void copy_masked(uint8_t* destination, const uint8_t* source, const uint8_t* mask) {
    store16(destination, _mm_and_si128(load16(source), load16(mask)));
  }
  static void copy_completed(uint8_t* destination, const uint8_t* source, const uint8_t* mask) {
    store32(destination, _mm256_zextsi128_si256(_mm_and_si128(load16(source), load16(mask))));
  }
  static void stream_masked(uint8_t* destination, const uint8_t* source, const uint8_t* mask) {
    put16(destination, _mm_and_si128(load16(source), load16(mask)), true);
  }
  static void stream(uint8_t* destination, const uint8_t* source) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(destination), load32(source));
  }
};

// Streaming stores are not ordered with those that tell others that the work is done.
void end_streaming(const ReorderArguments& arguments) {
  if (arguments.stores == Stores::kStreaming) _mm_sfence();
}

template <class T, class Kernel = Tiles<T>>
void run_tiles(const ReorderArguments& arguments) {
  walk_bytes<T, Kernel>(arguments);
  end_streaming(arguments);
}

template <class T>
void run_runs(const ReorderArguments& arguments) {
  walk_bytes<T, RunKernel<Vector, T>>(arguments);
  end_streaming(arguments);
}

}  // namespace

void reorder_x8_tiles__avx2(const ReorderArguments& a) { run_tiles<uint8_t>(a); }
void reorder_x16_tiles__avx2(const ReorderArguments& a) { run_tiles<uint16_t>(a); }
void reorder_x32_tiles__avx2(const ReorderArguments& a) { run_tiles<uint32_t>(a); }
void reorder_x64_tiles__avx2(const ReorderArguments& a) { run_tiles<uint64_t>(a); }
void reorder_x128_tiles__avx2(const ReorderArguments& a) {
  run_tiles<Unit128, TileKernel<LaneBlock, LaneBlock, StreamedLanes>>(a);
}

void reorder_x8_runs__avx2(const ReorderArguments& a) { run_runs<uint8_t>(a); }
void reorder_x16_runs__avx2(const ReorderArguments& a) { run_runs<uint16_t>(a); }
void reorder_x32_runs__avx2(const ReorderArguments& a) { run_runs<uint32_t>(a); }
void reorder_x64_runs__avx2(const ReorderArguments& a) { run_runs<uint64_t>(a); }
void reorder_x128_runs__avx2(const ReorderArguments& a) { run_runs<Unit128>(a); }

void transpose_listed_x4__avx2(const NibblePlaces& places, const uint8_t* source, uint8_t* destination,
                               uint8_t* pairs) {
  transpose_nibbles(places, transpose_listed_x8__avx2, source, destination, pairs);
}
void transpose_listed_x8__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<WideBlock<uint8_t>, NarrowBlock<uint8_t>>(places, source, destination);
}
void transpose_listed_x16__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<WideBlock<uint16_t>, NarrowBlock<uint16_t>>(places, source, destination);
}
void transpose_listed_x32__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<WideBlock<uint32_t>, NarrowBlock<uint32_t>>(places, source, destination);
}
void transpose_listed_x64__avx2(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<WideBlock<uint64_t>, NarrowBlock<uint64_t>>(places, source, destination);
}

void copy__avx2(const ReorderArguments& a) {
  copy_run<Vector>(a.destination, a.source + *a.plan.copy_offset() + a.begin, a.end - a.begin, a.stores);
  end_streaming(a);
}

}  // namespace tilework
