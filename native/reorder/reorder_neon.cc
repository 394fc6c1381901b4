// Tile transposes, channels and copies with NEON, which every 64-bit ARM processor has.
//
// Registers are 16 bytes. A square block has as many rows as units fit in one, so that each register holds
// one whole column in the end; a flat block has half as many rows, and two columns come out of each register.
// Interleaving 2, 3 or 4 rows is one instruction of this architecture (st2 to st4), and so is the way back.
#include <arm_neon.h>

#include "reorder/byte_elements.h"
#include "reorder/channels.h"
#include "reorder/kernels.h"
#include "reorder/leaves.h"
#include "reorder/nibble_leaves.h"
#include "reorder/run_copy.h"

namespace tilework {
namespace {

// The registers of a transpose are arrays in the source; they are registers only where all steps are inlined.
#define TILEWORK_INLINE [[gnu::always_inline]] inline

// Interleaves units of `kSize` bytes of the first, or of the second, halves of two registers.
template <int kSize>
TILEWORK_INLINE uint8x16_t zip_first(uint8x16_t a, uint8x16_t b) {
  if constexpr (kSize == 1) return vzip1q_u8(a, b);
  if constexpr (kSize == 2)
    return vreinterpretq_u8_u16(vzip1q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
  if constexpr (kSize == 4)
    return vreinterpretq_u8_u32(vzip1q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
  if constexpr (kSize == 8)
    return vreinterpretq_u8_u64(vzip1q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
}

template <int kSize>
TILEWORK_INLINE uint8x16_t zip_second(uint8x16_t a, uint8x16_t b) {
  if constexpr (kSize == 1) return vzip2q_u8(a, b);
  if constexpr (kSize == 2)
    return vreinterpretq_u8_u16(vzip2q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
  if constexpr (kSize == 4)
    return vreinterpretq_u8_u32(vzip2q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
  if constexpr (kSize == 8)
    return vreinterpretq_u8_u64(vzip2q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
}

// Row r meets row r + half. Of n rows, doing that log2(n) times interleaves them all.
template <int kSize, int kCount>
TILEWORK_INLINE void step(uint8x16_t (&rows)[kCount]) {
  uint8x16_t next[kCount];
  for (int r = 0; r < kCount / 2; ++r) {
    next[2 * r] = zip_first<kSize>(rows[r], rows[r + kCount / 2]);
    next[2 * r + 1] = zip_second<kSize>(rows[r], rows[r + kCount / 2]);
  }
  for (int r = 0; r < kCount; ++r) rows[r] = next[r];
}

template <int kSize, int kCount>
TILEWORK_INLINE void interleave(uint8x16_t (&rows)[kCount]) {
  for (int done = 1; done < kCount; done *= 2) step<kSize>(rows);
}

struct LineStores {
  static constexpr bool kMakesLines = false;
  static constexpr bool kLinesInRegisters = false;
  TILEWORK_INLINE static void store_line(uint8_t* destination, const uint8_t* line, Stores stores) {
    if (stores == Stores::kStreaming) {
      stream32(destination, line);
      stream32(destination + 32, line + 32);
    } else {
      for (int64_t i = 0; i < kLineBytes; i += 16) copy16(destination + i, line + i);
    }
  }
};

// Columns of 16 bytes.
template <class T>
struct SquareBlock : LineStores {
  using Unit = T;
  static constexpr int64_t kSourceSize = sizeof(T);
  static constexpr int kCount = 16 / sizeof(T);
  static constexpr int64_t kRows = kCount;
  static constexpr int64_t kColumns = kCount;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    uint8x16_t rows[kCount];
    for (int r = 0; r < kCount; ++r) rows[r] = vld1q_u8(source + row_at(r));
    interleave<sizeof(T)>(rows);
    for (int c = 0; c < kCount; ++c) vst1q_u8(destination + column_at(c), rows[c]);
  }
};

// Columns of 8 bytes.
template <class T>
struct FlatBlock : LineStores {
  using Unit = T;
  static constexpr int64_t kSourceSize = sizeof(T);
  static constexpr int kCount = 8 / sizeof(T);
  static constexpr int64_t kRows = kCount;
  static constexpr int64_t kColumns = 2 * kCount;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    uint8x16_t rows[kCount];
    for (int r = 0; r < kCount; ++r) rows[r] = vld1q_u8(source + row_at(r));
    interleave<sizeof(T)>(rows);
    for (int c = 0; c < kCount; ++c) {
      vst1_u8(destination + column_at(2 * c), vget_low_u8(rows[c]));
      vst1_u8(destination + column_at(2 * c + 1), vget_high_u8(rows[c]));
    }
  }
};

// Units of a whole register.
struct RegisterBlock : LineStores {
  using Unit = Unit128;
  static constexpr int64_t kSourceSize = sizeof(Unit);
  static constexpr int64_t kRows = 2;
  static constexpr int64_t kColumns = 2;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    for (int64_t c = 0; c < kColumns; ++c) {
      copy16(destination + column_at(c), source + row_at(0) + c * 16);
      copy16(destination + column_at(c) + 16, source + row_at(1) + c * 16);
    }
  }
};

// Two, three or four registers of units that are interleaved in memory.
#define TILEWORK_STRUCTURE(count, bits, structure)                                 \
  TILEWORK_INLINE auto load_structure(const uint##bits##_t* at, Count<count>) {    \
    return vld##count##q_u##bits(at);                                              \
  }                                                                                \
  TILEWORK_INLINE void store_structure(uint##bits##_t* at, const structure& all) { \
    vst##count##q_u##bits(at, all);                                                \
  }

template <int kCount>
using Count = std::integral_constant<int, kCount>;

TILEWORK_STRUCTURE(2, 8, uint8x16x2_t)
TILEWORK_STRUCTURE(3, 8, uint8x16x3_t)
TILEWORK_STRUCTURE(4, 8, uint8x16x4_t)
TILEWORK_STRUCTURE(2, 16, uint16x8x2_t)
TILEWORK_STRUCTURE(3, 16, uint16x8x3_t)
TILEWORK_STRUCTURE(4, 16, uint16x8x4_t)
TILEWORK_STRUCTURE(2, 32, uint32x4x2_t)
TILEWORK_STRUCTURE(3, 32, uint32x4x3_t)
TILEWORK_STRUCTURE(4, 32, uint32x4x4_t)
TILEWORK_STRUCTURE(2, 64, uint64x2x2_t)

#undef TILEWORK_STRUCTURE

// Eight rows are interleaved by steps, which of a register of sixteen or eight units also lead back.
template <class T>
class PixelsNeon {
 public:
  static constexpr int64_t kPixels = 16 / sizeof(T);

  template <int kCount, class Place>
  TILEWORK_INLINE static void interleave_pixels(const Tile& tile, int64_t valid, int64_t p, Place place) {
    uint8x16_t rows[kCount];
    for (int r = 0; r < kCount; ++r) {
      const uint8_t* from = tile.source + r * tile.source_row + p * kSize;
      rows[r] = r < valid ? vld1q_u8(from) : vdupq_n_u8(0);
    }
    uint8_t* to = place(p);
    if constexpr (kCount == 8) {
      interleave<kSize>(rows);
      for (int r = 0; r < kCount; ++r) vst1q_u8(to + r * 16, rows[r]);
    } else {
      decltype(load_structure(static_cast<const T*>(nullptr), Count<kCount>{})) all;
      std::memcpy(&all, rows, sizeof(all));
      store_structure(reinterpret_cast<T*>(to), all);
    }
  }

  template <int kCount, class Place>
  TILEWORK_INLINE static void take_pixels_apart(const Tile& tile, int64_t p, Place place) {
    const uint8_t* from = place(p);
    uint8x16_t channels[kCount];
    if constexpr (kCount == 8) {
      for (int i = 0; i < kCount; ++i) channels[i] = vld1q_u8(from + i * 16);
      for (int done = kSize; done < 16; done *= 2) step<kSize>(channels);
    } else {
      const auto all = load_structure(reinterpret_cast<const T*>(from), Count<kCount>{});
      std::memcpy(channels, &all, sizeof(channels));
    }
    for (int c = 0; c < kCount && c < tile.columns; ++c) {
      vst1q_u8(tile.destination + c * tile.destination_column + p * kSize, channels[c]);
    }
  }

 private:
  static constexpr int kSize = sizeof(T);
};

struct Neon {
  template <class T>
  using Wide = SquareBlock<T>;
  template <class T>
  using Narrow = std::conditional_t<sizeof(T) <= 4, FlatBlock<T>, SquareBlock<T>>;
  template <class T>
  using Half = void;
  template <class T>
  using Thin = void;
  template <class T>
  using Special = Channels<T, PixelsNeon<T>>;
  using LaneTiles = AnyTile<RegisterBlock, RegisterBlock, NoChannels>;
  static constexpr bool kPacks = false;
};

constexpr Leaves kLeaves{PanelLeaves<Neon>::of, PanelLeaves<Neon>::of_runs, NibbleLeaves<Neon>::of,
                         NibbleLeaves<Neon>::of_runs};

}  // namespace

const Leaves& leaves_neon() { return kLeaves; }

void reorder_tiles_neon(const ReorderArguments& a) { run_programs(a, kLeaves); }

void copy_neon(const ReorderArguments& a) {
  copy_run(a.destination, a.source + *a.plan.copy_offset() + a.begin, a.end - a.begin, a.stores);
  a.plan.clear_unused_bits(a.destination, a.begin, a.end);
}

}  // namespace tilework
