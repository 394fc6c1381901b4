// Blocks of transpose_places.h in registers (registers.h). Internal to each file, as transpose_places.h.
//
// A wide block puts row r in the low lane of a register and row r + half in the high lane, so that after
// log2(rows / 2) steps each register holds one whole column of 32 bytes. A narrow block has columns of 16
// bytes: row r in the low lane and row r + half in the high one, too, and two columns come out of each
// register.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "reorder/leaf/byte_elements.h"
#include "reorder/leaf/registers.h"
#include "reorder/leaf/tile.h"

namespace tilework {
namespace {

// Streaming stores need aligned lines; others are written the usual way.
struct LineStores {
  static constexpr bool kMakesLines = false;
  static constexpr bool kLinesInRegisters = false;
  TILEWORK_INLINE static void store_line(uint8_t* destination, const uint8_t* line, Stores stores) {
    const Register low = load32(line);
    const Register high = load32(line + 32);
    if (stores == Stores::kStreaming && is_aligned(destination, kLineBytes)) {
      stream32(destination, low);
      stream32(destination + 32, high);
    } else {
      store32(destination, low);
      store32(destination + 32, high);
    }
  }
};

// How blocks read rows: elements of the destination that fill a register, or half of one. Others cast on the
// way (cast_tiles_avx2.cc).
template <class T>
struct PlainLoad {
  using Unit = T;
  static constexpr int64_t kSourceSize = sizeof(T);
  TILEWORK_INLINE static Register halves(const uint8_t* low, const uint8_t* high) {
    return load_lanes(low, high);
  }
  TILEWORK_INLINE static Register whole(const uint8_t* at) { return load32(at); }
};

// Columns of 32 bytes.
template <class T, class Load = PlainLoad<T>>
struct WideBlock : LineStores {
  using Unit = T;
  static constexpr int64_t kSourceSize = Load::kSourceSize;
  static constexpr int kCount = 16 / sizeof(T);
  static constexpr int64_t kRows = 2 * kCount;
  static constexpr int64_t kColumns = kCount;
  static constexpr bool kMakesLines = true;
  static constexpr bool kLinesInRegisters = kCount <= 8;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    Register rows[kCount];
    load_columns(source, row_at, rows);
    for (int c = 0; c < kCount; ++c) store32(destination + column_at(c), rows[c]);
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
      Register low[kCount];
      Register high[kCount];
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
  TILEWORK_INLINE static void load_columns(const uint8_t* source, Rows row_at, Register (&rows)[kCount]) {
    for (int r = 0; r < kCount; ++r) rows[r] = Load::halves(source + row_at(r), source + row_at(r + kCount));
    transpose_lanes<sizeof(T)>(rows);
  }
};

// Columns of 16 bytes. Half as many registers as rows: two columns come out of each, so that neighbours in
// the destination take one store.
template <class T, class Load = PlainLoad<T>>
struct NarrowBlock : LineStores {
  using Unit = T;
  static constexpr int64_t kSourceSize = Load::kSourceSize;
  static constexpr int kCount = 16 / sizeof(T);
  static constexpr int64_t kRows = kCount;
  static constexpr int64_t kColumns = kCount;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    constexpr int kHalf = kCount / 2;
    Register rows[kHalf];
    for (int r = 0; r < kHalf; ++r) rows[r] = Load::halves(source + row_at(r), source + row_at(r + kHalf));
    for (int done = 1; done < kHalf; done *= 2) step<sizeof(T)>(rows);
    bool are_neighbours = false;
    if constexpr (requires { requires Columns::kIsEven; }) are_neighbours = column_at(1) == column_at(0) + 16;
    for (int k = 0; k < kHalf; ++k) {
      // Halves of both columns of each half of the rows.
      const Register columns = part_lanes(rows[k]);
      if (are_neighbours) {
        store32(destination + column_at(2 * k), columns);
      } else {
        store16(destination + column_at(2 * k), low_lane(columns));
        store16(destination + column_at(2 * k + 1), high_lane(columns));
      }
    }
  }
};

// Columns of 8 bytes, two of which follow each other in each lane.
template <class T, class Load = PlainLoad<T>>
struct HalfBlock : LineStores {
  using Unit = T;
  static constexpr int64_t kSourceSize = Load::kSourceSize;
  static constexpr int kCount = 8 / sizeof(T);
  static constexpr int64_t kRows = kCount;
  static constexpr int64_t kColumns = 32 / sizeof(T);
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    Register rows[kCount];
    for (int r = 0; r < kCount; ++r) rows[r] = Load::whole(source + row_at(r));
    interleave<sizeof(T)>(rows);
    for (int r = 0; r < kCount; ++r) {
      const auto store = [&](int64_t c, Lane pair) {
        store_halves(destination + column_at(c), destination + column_at(c + 1), pair);
      };
      store(2 * r, low_lane(rows[r]));
      store(kColumns / 2 + 2 * r, high_lane(rows[r]));
    }
  }
};

// Rows of 8 bytes, of which two make a lane.
template <class T>
struct ThinBlock : LineStores {
  using Unit = T;
  static constexpr int64_t kSourceSize = sizeof(T);
  static constexpr int kCount = 8 / sizeof(T);
  static constexpr int64_t kRows = 32 / sizeof(T);
  static constexpr int64_t kColumns = kCount;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    Register rows[kCount];
    for (int i = 0; i < kCount; ++i) {
      rows[i] =
          combine(load_pair(source, row_at.from(2 * i)), load_pair(source, row_at.from(kRows / 2 + 2 * i)));
    }
    take_apart<sizeof(T)>(rows);
    for (int c = 0; c < kCount; ++c) store32(destination + column_at(c), rows[c]);
  }

 private:
  template <class Rows>
  TILEWORK_INLINE static Lane load_pair(const uint8_t* source, Rows row_at) {
    int64_t low = 0;
    int64_t high = 0;
    std::memcpy(&low, source + row_at(0), sizeof(low));
    std::memcpy(&high, source + row_at(1), sizeof(high));
    return Lane{low, high};
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
  static constexpr int64_t kSourceSize = sizeof(Unit);
  static constexpr int64_t kRows = 2;
  static constexpr int64_t kColumns = 2;
  template <class Rows, class Columns>
  TILEWORK_INLINE static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                        Columns column_at) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const uint8_t* from = source + c * kSourceSize;
      store32(destination + column_at(c), load_lanes(from + row_at(0), from + row_at(1)));
    }
  }
};

}  // namespace
}  // namespace tilework
