// The kernel of runs: rectangles whose rows are contiguous on both sides, of which the destination may be
// completed with zeros. Internal to each file, as nest_walk.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "io/checked_math.h"
#include "reorder/rectangle.h"
#include "reorder/run_chain.h"
#include "reorder/run_copy.h"

namespace tilework {
namespace {

// `Vector` as in run_copy.h; elements of `Unit`.
template <class Vector, class Unit>
struct RunKernel {
  static void move(const Rectangle& rectangle) {
    // Moved as half a vector, with what lies behind them in the source.
    if (rectangle.rows * kSize < kHalfBytes && is_loose(rectangle)) return move_short(rectangle);
    switch (rectangle.rows * kSize) {
      case 16:
        return move_fixed<16>(rectangle);
      case 32:
        return move_fixed<32>(rectangle);
      case 64:
        return move_fixed<64>(rectangle);
      case 128:
        return move_fixed<128>(rectangle);
      default:
        if (!move_few(rectangle)) move_any(rectangle);
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(Unit);
  // Whether there is something behind each run but the last few: in the source the next one, and in the
  // destination zeros, or the next run, which is written later.
  static bool is_loose(const Rectangle& rectangle) {
    const int64_t end = rectangle.rows + rectangle.zero_rows;
    const bool has_room = end * kSize >= kHalfBytes || rectangle.destination_column == end;
    return kSize <= 4 && rectangle.source_column >= rectangle.rows && has_room;
  }

  // Columns before the last few, whose pieces would reach behind the memory of the rectangle.
  static int64_t loose_columns(int64_t columns, int64_t column, int64_t run) {
    return run >= kHalfBytes ? columns : std::max<int64_t>(columns - ceil_div(kHalfBytes - run, column), 0);
  }

  static void move_short(const Rectangle& rectangle) {
    const int64_t run = rectangle.rows * kSize;
    const int64_t end = run + rectangle.zero_rows * kSize;
    const int64_t loose =
        std::min(loose_columns(rectangle.columns, rectangle.source_column * kSize, run),
                 loose_columns(rectangle.columns, rectangle.destination_column * kSize, end));
    const bool streams = rectangle.stores == Stores::kStreaming && end % kHalfBytes == 0 &&
                         rectangle.destination_column == rectangle.rows + rectangle.zero_rows &&
                         is_aligned(rectangle.destination, kHalfBytes);
    if (streams) {
      move_masked<Zeros::kStreamed>(rectangle, loose, run, end);
    } else if (end >= Vector::kBytes) {
      move_masked<Zeros::kVectors>(rectangle, loose, run, end);
    } else {
      move_masked<Zeros::kHalves>(rectangle, loose, run, end);
    }
    Rectangle rest = rectangle;
    rest.columns -= loose;
    rest.source += loose * rectangle.source_column * kSize;
    rest.destination += loose * rectangle.destination_column * kSize;
    move_any(rest);
  }

  // How those behind a run are written.
  enum class Zeros { kHalves, kVectors, kStreamed };

  template <Zeros kZeros>
  [[gnu::noinline]] static void move_masked(const Rectangle& rectangle, int64_t columns, int64_t run,
                                            int64_t end) {
    uint8_t mask[kHalfBytes] = {};
    std::memset(mask, 0xFF, static_cast<size_t>(run));
    const int64_t source_column = rectangle.source_column * kSize;
    const int64_t destination_column = rectangle.destination_column * kSize;
    const uint8_t* from = rectangle.source;
    uint8_t* to = rectangle.destination;
    for (int64_t c = 0; c < columns; ++c, from += source_column, to += destination_column) {
      if constexpr (kZeros == Zeros::kStreamed) {
        Vector::stream_masked(to, from, mask);
        for (int64_t i = kHalfBytes; i < end; i += kHalfBytes) Vector::stream_zero_half(to + i);
      } else if constexpr (kZeros == Zeros::kVectors) {
        for (int64_t i = Vector::kBytes; i < end; i += Vector::kBytes) {
          Vector::zero(to + std::min(i, end - Vector::kBytes));
        }
        Vector::copy_completed(to, from, mask);
      } else {
        // The last zeros may reach into the run, which comes after them.
        for (int64_t i = kHalfBytes; i < end; i += kHalfBytes)
          Vector::zero_half(to + std::min(i, end - kHalfBytes));
        Vector::copy_masked(to, from, mask);
      }
    }
  }

  // The compiler unrolls runs of a known size.
  template <int64_t kBytes>
  static void move_fixed(const Rectangle& rectangle) {
    // Shorter runs fill lines together where they lie side by side.
    const bool is_dense = rectangle.destination_column * kSize == kBytes;
    const bool fills_lines = kBytes % kLineBytes == 0 || (is_dense && kBytes % Vector::kBytes == 0);
    if (rectangle.stores == Stores::kStreaming && fills_lines &&
        are_columns_aligned(rectangle, kSize, std::min(kBytes, kLineBytes))) {
      each_column(rectangle, [](uint8_t* to, const uint8_t* from) {
        for (int64_t i = 0; i < kBytes; i += Vector::kBytes) Vector::stream(to + i, from + i);
      });
    } else if constexpr (kBytes < Vector::kBytes) {
      each_column(rectangle, [](uint8_t* to, const uint8_t* from) { Vector::copy_half(to, from); });
    } else {
      each_column(rectangle, [](uint8_t* to, const uint8_t* from) {
        for (int64_t i = 0; i < kBytes; i += Vector::kBytes) Vector::copy(to + i, from + i);
      });
    }
  }

  // Runs below a piece that cannot be moved as one; false for longer ones.
  static bool move_few(const Rectangle& rectangle) {
    return with_short_size<kSize>(rectangle.rows * kSize, [&](auto size) {
      each_column(rectangle,
                  [](uint8_t* to, const uint8_t* from) { std::memcpy(to, from, decltype(size)::value); });
    });
  }

  static void move_any(const Rectangle& rectangle) {
    // Lines that two runs share would be written to memory twice.
    constexpr int64_t kLongRun = 1024;
    const Stores stores = rectangle.rows * kSize >= kLongRun ? rectangle.stores : Stores::kCached;
    each_column(rectangle, [&](uint8_t* to, const uint8_t* from) {
      copy_run<Vector>(to, from, rectangle.rows * kSize, stores);
    });
  }

  // A function of its own: among the loops around it there are no registers left for its places.
  template <class Body>
  [[gnu::noinline]] static void each_column(const Rectangle& rectangle, Body body) {
    const int64_t run = rectangle.rows * kSize;
    const int64_t zeros = rectangle.zero_rows * kSize;
    const int64_t source_column = rectangle.source_column * kSize;
    const int64_t destination_column = rectangle.destination_column * kSize;
    const uint8_t* from = rectangle.source;
    uint8_t* to = rectangle.destination;
    int64_t c = rectangle.columns;
    // A loop of a few instructions takes a tenth longer with a question in it.
    if (zeros == 0) {
      for (; c > 0; --c, from += source_column, to += destination_column) body(to, from);
    }
    for (; c > 0; --c, from += source_column, to += destination_column) {
      zero_end(to, run, zeros);
      body(to, from);
    }
  }

  // May write into the run, which comes after it.
  static void zero_end(uint8_t* column, int64_t run, int64_t zeros) {
    const int64_t end = run + zeros;
    if (end < Vector::kBytes) {
      if (end < kHalfBytes) {
        for (int64_t i = run; i < end; ++i) column[i] = 0;
        return;
      }
      Vector::zero_half(column);
      Vector::zero_half(column + end - kHalfBytes);
      return;
    }
    for (int64_t i = end - Vector::kBytes; i > run; i -= Vector::kBytes) Vector::zero(column + i);
    Vector::zero(column + std::min(run, end - Vector::kBytes));
  }
};

}  // namespace
}  // namespace tilework
