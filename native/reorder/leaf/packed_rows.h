// Panels with gaps between the columns in the source. Their rows are packed in the L1 cache first, or, where
// every second or fourth unit is a column, merged: each column of as many rows becomes one wider unit.
// Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/leaf/any_tile.h"
#include "reorder/leaf/panel_steps.h"
#include "reorder/leaf/ways.h"

namespace tilework {
namespace {

template <size_t kBytes>
using UnitOf = std::conditional_t<
    kBytes == 1, uint8_t,
    std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

// Rows of every `kMerged`-th unit as one row without gaps: its units have one of each row.
template <class T, int kMerged>
class MergedRows {
 public:
  using Unit = UnitOf<sizeof(T) * kMerged>;

  // Writes up to the next multiple of a register. Reads nothing before the first unit of a row, or behind its
  // last one.
  static void merge(const uint8_t* const (&rows)[kMerged], int64_t columns, uint8_t* merged) {
    int64_t c = 0;
    for (; c + kWidth < columns; c += kWidth) merge_at<0>(rows, c, merged);
    // Units that end with the last one; each follows its gap.
    if (columns > kWidth) return merge_at<kGap>(rows, columns - kWidth, merged);
    uint8_t last[kMerged][kBytes] = {};
    const uint8_t* at[kMerged];
    const int64_t bytes = columns * int64_t{sizeof(Unit)} - kGap;
    for (int r = 0; r < kMerged; ++r) {
      std::memcpy(last[r], rows[r], static_cast<size_t>(bytes));
      at[r] = last[r];
    }
    merge_at<0>(at, 0, merged);
  }

 private:
  static constexpr int64_t kBytes = 32;
  static constexpr int64_t kWidth = kBytes / sizeof(Unit);
  static constexpr int64_t kGap = sizeof(Unit) - sizeof(T);
  static constexpr int kBits = 8 * sizeof(T);
  using Vector [[gnu::vector_size(kBytes)]] = Unit;

  // A register of columns from `c` on, each read with `kBefore` bytes of the gap before it.
  template <int64_t kBefore>
  [[gnu::always_inline]] static void merge_at(const uint8_t* const (&rows)[kMerged], int64_t c,
                                              uint8_t* merged) {
    constexpr int kPlace = static_cast<int>(kBefore / int64_t{sizeof(T)});
    constexpr Unit kLow = static_cast<Unit>(static_cast<T>(~T{}));
    Vector made{};
    for (int r = 0; r < kMerged; ++r) {
      Vector units;
      std::memcpy(&units, rows[r] + c * int64_t{sizeof(Unit)} - kBefore, sizeof(units));
      if (r > kPlace) units = units << static_cast<Unit>((r - kPlace) * kBits);
      if (r < kPlace) units = units >> static_cast<Unit>((kPlace - r) * kBits);
      const Unit place = static_cast<Unit>(kLow << (r * kBits));
      made |= units & place;
    }
    std::memcpy(merged + c * int64_t{sizeof(Unit)}, &made, sizeof(made));
  }
};

template <class Machine, class T>
using TilesOf = AnyTile<typename Machine::template Wide<T>, typename Machine::template Narrow<T>,
                        typename Machine::template Special<T>>;

// Every `step`-th byte's unit, side by side.
template <class Machine, class T>
void pack(const uint8_t* source, int64_t step, uint8_t* packed, int64_t count) {
  constexpr int64_t kSize = sizeof(T);
  if constexpr (kSize <= 4 && Machine::kPacks) {
    constexpr int kMost = std::min<int>(8, kMaxPackedStep.value / kSize);
    const auto with = [&]<int kFirst, int... kSteps>(std::integer_sequence<int, kSteps...>,
                                                     std::integral_constant<int, kFirst>) {
      const auto try_one = [&](auto one) {
        if (step != one * kSize) return false;
        Machine::template pack<T, one>(source, packed, count);
        return true;
      };
      return (... || try_one(std::integral_constant<int, kFirst + kSteps>{}));
    };
    if (with(std::make_integer_sequence<int, kMost - 1>{}, std::integral_constant<int, 2>{})) return;
    if (with(std::make_integer_sequence<int, kMost>{}, std::integral_constant<int, -kMost>{})) return;
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(packed + i * kSize, source + i * step, kSize);
}

// Moves a panel in parts of as many rows and columns as the buffer holds.
template <class Machine, class T>
class PackedRows {
 public:
  static Way way_of(const Panel& panel) {
    return rows_a_unit(merged(panel)) > 1 ? Way::kMergedRows : Way::kPackedRows;
  }

  static void move(const Panel& panel) {
    const Panel one = merged(panel);
    const int64_t merged_rows = rows_a_unit(one);
    if constexpr (kSize <= 4) {
      if (merged_rows == 2) return move_by<2>(one);
    }
    if constexpr (kSize <= 2) {
      if (merged_rows == 4) return move_by<4>(one);
    }
    move_by<1>(one);
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kBufferBytes = kPackedRowsBytes.value;

  // Rows that become one row of wider units, of at most 8 bytes.
  static int64_t rows_a_unit(const Panel& one) {
    const int64_t step = one.column_step / kSize;
    const bool merges = one.holes == 0 && one.zero_rows == 0 && one.column_at == nullptr;
    const bool has_size = step == 2 ? kSize <= 4 : step == 4 && kSize <= 2;
    return merges && has_size && one.rows % step == 0 ? step : 1;
  }

  template <int kMerged>
  [[gnu::noinline]] static void move_by(const Panel one) {
    TILEWORK_TAKES(kMerged > 1 ? Way::kMergedRows : Way::kPackedRows);
    using Unit = typename MergedRows<T, kMerged>::Unit;
    alignas(kLineBytes) uint8_t buffer[kBufferBytes + kLineBytes];
    const int64_t high = at_most(one.rows, kMostPackedRows) / kMerged;
    const int64_t room = kBufferBytes / high / kLineBytes * kLineBytes;
    const int64_t wide = std::min<int64_t>(one.columns, room / sizeof(Unit));
    const int64_t stride = ceil_div(wide * int64_t{sizeof(Unit)}, kLineBytes) * kLineBytes;
    at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
      for (int64_t r = 0; r < one.rows; r += high * kMerged) {
        const int64_t rows = std::min(high, (one.rows - r) / kMerged);
        for (int64_t c = 0; c < one.columns; c += wide) {
          const int64_t columns = std::min(wide, one.columns - c);
          // What comes behind it in the row, or the same of the next step.
          const int64_t next = c + wide < one.columns ? wide * one.column_step : one.inner.source;
          pack_rows<kMerged>(one, source + c * one.column_step, r, rows, columns, next, buffer, stride);
          write<Unit>(one, buffer, stride, rows, c, columns, destination + r * kSize);
        }
      }
    });
  }

  // Reads nothing through `one` in the loop: stores of bytes may change any object that others can see.
  template <int kMerged>
  [[gnu::always_inline]] static void pack_rows(const Panel& one, const uint8_t* source, int64_t first,
                                               int64_t rows, int64_t columns, int64_t next, uint8_t* buffer,
                                               int64_t stride) {
    const At row_at{one.row_at, one.row_stride};
    const int64_t step = one.column_step;
    const int64_t valid = one.rows - one.zero_rows;
    const bool fetches = one.rows <= kMostFetchedRows && columns * step >= kFetchedRowBytes;
    for (int64_t r = first; r < first + rows * kMerged; r += kMerged, buffer += stride) {
      if (r >= valid || row_at(r) == kNoSource) {
        std::memset(buffer, 0, static_cast<size_t>(columns * kSize));
        continue;
      }
      const uint8_t* at[kMerged];
      for (int m = 0; m < kMerged; ++m) {
        at[m] = source + row_at(r + m);
        if (fetches) fetch_piece(at[m] + next, columns * step);
      }
      if constexpr (kMerged > 1) {
        MergedRows<T, kMerged>::merge(at, columns, buffer);
      } else if (step == kSize) {
        copy_piece(buffer, at[0], columns * kSize);
      } else {
        pack<Machine, T>(at[0], step, buffer, columns);
      }
    }
  }

  template <class Unit>
  static void write(const Panel& one, const uint8_t* buffer, int64_t stride, int64_t rows, int64_t first,
                    int64_t columns, uint8_t* destination) {
    if (one.column_at == nullptr) {
      TilesOf<Machine, Unit>::run({buffer, destination + first * one.column_stride, columns, rows, 0, stride,
                                   one.column_stride, Stores::kCached});
      return;
    }
    for (int64_t c = 0; c < columns; ++c) {
      uint8_t* to = destination + one.column_at[first + c];
      for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * kSize, buffer + r * stride + c * kSize, kSize);
    }
  }
};

}  // namespace
}  // namespace tilework
