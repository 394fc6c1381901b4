// Copies runs: bytes that source and destination both keep together. Own loops, because the C library's
// memcpy has places where it is many times slower (`rep movsb` with source and destination a few bytes apart
// modulo a page), and chooses streaming stores by the size of one call, which of many short runs says
// nothing. Internal to each file, as nest_walk.h. An instruction set brings its vectors:
//
//   struct Vector {
//     static constexpr int64_t kBytes;      // a power of two, at least 16
//     static void copy(uint8_t* destination, const uint8_t* source);     // kBytes
//     static void copy_half(uint8_t* destination, const uint8_t* source);
//     static void stream(uint8_t* destination, const uint8_t* source);   // to an aligned place
//     static void zero(uint8_t* destination);                            // kBytes
//     static void zero_half(uint8_t* destination);
//     static void stream_zero_half(uint8_t* destination);
//     // Half a vector of 16 bytes, of which those stay that have a bit in `mask`, as many bytes; the others
//     // become zero.
//     static void copy_masked(uint8_t* destination, const uint8_t* source, const uint8_t* mask);
//     static void stream_masked(uint8_t* destination, const uint8_t* source, const uint8_t* mask);
//     // The same, with zeros behind up to kBytes.
//     static void copy_completed(uint8_t* destination, const uint8_t* source, const uint8_t* mask);
//   };
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>

#include "reorder/nest_walk.h"

namespace tilework {
namespace {

// Overlapping pieces instead of a loop over single bytes; 0 < size < 2 * kBytes of a vector.
template <class Vector>
void copy_short(uint8_t* destination, const uint8_t* source, int64_t size) {
  constexpr int64_t kVector = Vector::kBytes;
  const auto ends = [&](auto copy, int64_t piece) {
    copy(destination, source);
    copy(destination + size - piece, source + size - piece);
  };
  if (size >= kVector) {
    ends([](uint8_t* to, const uint8_t* from) { Vector::copy(to, from); }, kVector);
  } else if (size >= kVector / 2) {
    ends([](uint8_t* to, const uint8_t* from) { Vector::copy_half(to, from); }, kVector / 2);
  } else if (size >= 8) {
    for (int64_t i = 0; i + 8 <= size; i += 8) std::memcpy(destination + i, source + i, 8);
    std::memcpy(destination + size - 8, source + size - 8, 8);
  } else if (size >= 4) {
    ends([](uint8_t* to, const uint8_t* from) { std::memcpy(to, from, 4); }, 4);
  } else {
    for (int64_t i = 0; i < size; ++i) destination[i] = source[i];
  }
}

// Any size. Stores are aligned, as others take two lines each.
template <class Vector>
void copy_run(uint8_t* destination, const uint8_t* source, int64_t size, Stores stores) {
  constexpr int64_t kVector = Vector::kBytes;
  if (size < 2 * kVector) {
    if (size > 0) copy_short<Vector>(destination, source, size);
    return;
  }
  Vector::copy(destination, source);
  const int64_t ahead = kVector - static_cast<int64_t>(reinterpret_cast<uintptr_t>(destination) % kVector);
  int64_t i = ahead % kVector;
  if (stores == Stores::kStreaming) {
    for (; i + kVector <= size; i += kVector) Vector::stream(destination + i, source + i);
  } else {
    for (; i + 4 * kVector <= size; i += 4 * kVector) {
      for (int64_t k = 0; k < 4 * kVector; k += kVector) Vector::copy(destination + i + k, source + i + k);
    }
    for (; i + kVector <= size; i += kVector) Vector::copy(destination + i, source + i);
  }
  if (i < size) Vector::copy(destination + size - kVector, source + size - kVector);
}

template <class Vector, class Unit>
struct RunKernel {
  static constexpr NestClass kClass = NestClass::kRuns;

  // As many of the runs that go on as fill lines, and let lines of the source be used up before they leave
  // the first-level cache; beyond the caches a few more, as memory takes longer pieces faster. Of columns
  // that are too many for that, each pass reads as many places as processors follow. Runs of whole lines that
  // stay in the caches gain nothing.
  static bool move_chain(const Rectangle& rectangle, const RectangleChain& chain) {
    if (chain.rest > 0) return move_with_rest(rectangle, chain);
    constexpr int64_t kManyColumns = 128;
    constexpr int64_t kFollowed = 8;
    const bool streams = rectangle.stores == Stores::kStreaming;
    const int64_t run = rectangle.rows * kSize;
    const int64_t a_line = kLine / std::gcd(kLine, run);
    const int64_t kept = (streams ? 4 << 10 : 1 << 10) / (run * rectangle.columns);
    const int64_t wanted = rectangle.columns >= kManyColumns ? kFollowed : std::max<int64_t>(kept, 1);
    const int64_t at_once = streams || a_line > 1 ? wanted + a_line - 1 : chain.count;
    for (int64_t first = 0; first < chain.count;) {
      RectangleChain part = chain;
      part.count = std::min(at_once / a_line * a_line, chain.count - first);
      Rectangle from = rectangle;
      from.source += first * chain.source_stride * kSize;
      from.destination += first * chain.destination_stride * kSize;
      move_runs(from, part);
      first += part.count;
    }
    return true;
  }

  static bool fits_pixels(int64_t, int64_t, int64_t) { return false; }
  static void move_pixels(const Rectangle&, const PixelGroups&) {}

  static void move(const Rectangle& rectangle) {
    if (rectangle.rows * kSize < kPiece && is_loose(rectangle)) return move_short(rectangle);
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
  static constexpr int64_t kLine = 64;

  static bool is_aligned(const Rectangle& rectangle, int64_t to) {
    return reinterpret_cast<uintptr_t>(rectangle.destination) % static_cast<uintptr_t>(to) == 0 &&
           rectangle.destination_column * kSize % to == 0;
  }

  static void move_runs(const Rectangle& rectangle, const RectangleChain& chain) {
    switch (rectangle.rows * kSize) {
      case 16:
        return move_fixed_runs<16>(rectangle, chain);
      case 32:
        return move_fixed_runs<32>(rectangle, chain);
      case 64:
        return move_fixed_runs<64>(rectangle, chain);
      default:
        return each_run(rectangle, chain, [run = rectangle.rows * kSize](uint8_t* to, const uint8_t* from) {
          copy_run<Vector>(to, from, run, Stores::kCached);
        });
    }
  }

  // All runs of a column and the rest behind them, which is moved in pieces: what is too much of the last one
  // the next column writes over, and it comes from the hole behind the rest. False where columns have gaps,
  // or the hole is none that may be read.
  static bool move_with_rest(const Rectangle& rectangle, const RectangleChain& chain) {
    const int64_t run = rectangle.rows * kSize;
    const int64_t rest = chain.rest * kSize;
    const bool is_dense = rectangle.destination_column == chain.count * rectangle.rows + chain.rest;
    const bool has_hole =
        kSize <= 4 && rectangle.source_column >= rectangle.rows && ceil_div(rest, kPiece) * kPiece <= run;
    if (!is_dense || !has_hole) return false;
    switch (run) {
      case 16:
        move_fixed_with_rest<16>(rectangle, chain);
        return true;
      case 32:
        move_fixed_with_rest<32>(rectangle, chain);
        return true;
      case 64:
        move_fixed_with_rest<64>(rectangle, chain);
        return true;
      default:
        return false;
    }
  }

  // One run is what short columns have, and a loop over it takes longer than the run.
  template <int64_t kRun>
  static void move_fixed_with_rest(const Rectangle& rectangle, const RectangleChain& chain) {
    if (chain.count == 1) {
      each_with_rest<kRun>(rectangle, chain, std::integral_constant<int64_t, 1>{});
    } else {
      each_with_rest<kRun>(rectangle, chain, chain.count);
    }
  }

  template <int64_t kRun, class Count>
  [[gnu::noinline]] static void each_with_rest(const Rectangle rectangle, const RectangleChain chain,
                                               Count count) {
    const int64_t rest = chain.rest * kSize;
    const int64_t source_stride = chain.source_stride * kSize;
    const int64_t source_column = rectangle.source_column * kSize;
    const uint8_t* from = rectangle.source;
    uint8_t* to = rectangle.destination;
    const auto move_runs_of = [&](const uint8_t* at) {
      for (int64_t i = 0; i < count; ++i, at += source_stride, to += kRun) {
        if constexpr (kRun < Vector::kBytes) {
          Vector::copy_half(to, at);
        } else {
          for (int64_t k = 0; k < kRun; k += Vector::kBytes) Vector::copy(to + k, at + k);
        }
      }
      return at;
    };
    for (int64_t c = 1; c < rectangle.columns; ++c, from += source_column, to += rest) {
      const uint8_t* behind = move_runs_of(from);
      Vector::copy_half(to, behind);
      // A rest is less than a run.
      if constexpr (kRun > kPiece) {
        for (int64_t k = kPiece; k < rest; k += kPiece) Vector::copy_half(to + k, behind + k);
      }
    }
    const uint8_t* behind = move_runs_of(from);
    copy_run<Vector>(to, behind, rest, Stores::kCached);
  }

  template <int64_t kBytes>
  static void move_fixed_runs(const Rectangle& rectangle, const RectangleChain& chain) {
    if constexpr (kBytes < Vector::kBytes) {
      each_run(rectangle, chain, [](uint8_t* to, const uint8_t* from) { Vector::copy_half(to, from); });
    } else if (rectangle.stores == Stores::kStreaming && is_aligned(rectangle, kLine) &&
               chain.count * kBytes % kLine == 0) {
      each_run(rectangle, chain, [](uint8_t* to, const uint8_t* from) {
        for (int64_t i = 0; i < kBytes; i += Vector::kBytes) Vector::stream(to + i, from + i);
      });
    } else {
      each_run(rectangle, chain, [](uint8_t* to, const uint8_t* from) {
        for (int64_t i = 0; i < kBytes; i += Vector::kBytes) Vector::copy(to + i, from + i);
      });
    }
  }

  template <class Body>
  static void each_run(const Rectangle& rectangle, const RectangleChain& chain, Body body) {
    const int64_t source_stride = chain.source_stride * kSize;
    const int64_t run = rectangle.rows * kSize;
    NextRuns next(rectangle, chain);
    for (int64_t c = 0; c < rectangle.columns; ++c) {
      next.fetch();
      const uint8_t* from = rectangle.source + c * rectangle.source_column * kSize;
      uint8_t* to = rectangle.destination + c * rectangle.destination_column * kSize;
      for (int64_t i = 0; i < chain.count; ++i, from += source_stride, to += run) body(to, from);
    }
  }

  // Asks for the source of the runs that come next, where those of all columns are one piece of memory: their
  // steps from pixel to pixel are too wide for processors to follow.
  class NextRuns {
   public:
    NextRuns(const Rectangle& rectangle, const RectangleChain& chain) {
      const int64_t step = chain.source_stride * kSize;
      const bool is_dense = rectangle.source_column == rectangle.rows &&
                            rectangle.columns * rectangle.source_column == chain.source_stride;
      if (rectangle.stores != Stores::kStreaming || !is_dense) return;
      const int64_t bytes = chain.count * step;
      next_ = rectangle.source + bytes;
      lines_ = ceil_div(bytes, kLine * rectangle.columns);
    }
    // A column's share.
    void fetch() {
      constexpr int kSecondLevel = 2;
      for (int64_t i = 0; i < lines_; ++i, next_ += kLine) __builtin_prefetch(next_, 0, kSecondLevel);
    }

   private:
    const uint8_t* next_ = nullptr;
    int64_t lines_ = 0;
  };

  // Runs below this many bytes are moved as so many, with what lies behind them in the source.
  static constexpr int64_t kPiece = 16;

  // Whether there is something behind each run but the last few: in the source the next one, and in the
  // destination zeros, or the next run, which is written later.
  static bool is_loose(const Rectangle& rectangle) {
    const int64_t end = rectangle.rows + rectangle.zero_rows;
    const bool has_room = end * kSize >= kPiece || rectangle.destination_column == end;
    return kSize <= 4 && rectangle.source_column >= rectangle.rows && has_room;
  }

  // Columns before the last few, whose pieces would reach behind the memory of the rectangle.
  static int64_t loose_columns(int64_t columns, int64_t column, int64_t run) {
    return run >= kPiece ? columns : std::max<int64_t>(columns - ceil_div(kPiece - run, column), 0);
  }

  static void move_short(const Rectangle& rectangle) {
    const int64_t run = rectangle.rows * kSize;
    const int64_t end = run + rectangle.zero_rows * kSize;
    const int64_t loose =
        std::min(loose_columns(rectangle.columns, rectangle.source_column * kSize, run),
                 loose_columns(rectangle.columns, rectangle.destination_column * kSize, end));
    const bool streams = rectangle.stores == Stores::kStreaming && end % kPiece == 0 &&
                         rectangle.destination_column == rectangle.rows + rectangle.zero_rows &&
                         reinterpret_cast<uintptr_t>(rectangle.destination) % kPiece == 0;
    if (streams) {
      move_masked<Zeros::kStreamed>(rectangle, loose, run, end);
    } else if (end >= Vector::kBytes) {
      move_masked<Zeros::kVectors>(rectangle, loose, run, end);
    } else {
      move_masked<Zeros::kPieces>(rectangle, loose, run, end);
    }
    Rectangle rest = rectangle;
    rest.columns -= loose;
    rest.source += loose * rectangle.source_column * kSize;
    rest.destination += loose * rectangle.destination_column * kSize;
    move_any(rest);
  }

  // How those behind a run are written.
  enum class Zeros { kPieces, kVectors, kStreamed };

  template <Zeros kZeros>
  [[gnu::noinline]] static void move_masked(const Rectangle& rectangle, int64_t columns, int64_t run,
                                            int64_t end) {
    uint8_t mask[kPiece] = {};
    std::memset(mask, 0xFF, static_cast<size_t>(run));
    const int64_t source_column = rectangle.source_column * kSize;
    const int64_t destination_column = rectangle.destination_column * kSize;
    const uint8_t* from = rectangle.source;
    uint8_t* to = rectangle.destination;
    for (int64_t c = 0; c < columns; ++c, from += source_column, to += destination_column) {
      if constexpr (kZeros == Zeros::kStreamed) {
        Vector::stream_masked(to, from, mask);
        for (int64_t i = kPiece; i < end; i += kPiece) Vector::stream_zero_half(to + i);
      } else if constexpr (kZeros == Zeros::kVectors) {
        for (int64_t i = Vector::kBytes; i < end; i += Vector::kBytes) {
          Vector::zero(to + std::min(i, end - Vector::kBytes));
        }
        Vector::copy_completed(to, from, mask);
      } else {
        // The last zeros may reach into the run, which comes after them.
        for (int64_t i = kPiece; i < end; i += kPiece) Vector::zero_half(to + std::min(i, end - kPiece));
        Vector::copy_masked(to, from, mask);
      }
    }
  }

  // The compiler unrolls runs of a known size.
  template <int64_t kBytes>
  static void move_fixed(const Rectangle& rectangle) {
    // Shorter runs fill lines together where they lie side by side.
    const bool is_dense = rectangle.destination_column * kSize == kBytes;
    const bool fills_lines = kBytes % kLine == 0 || (is_dense && kBytes % Vector::kBytes == 0);
    if (rectangle.stores == Stores::kStreaming && fills_lines &&
        is_aligned(rectangle, std::min(kBytes, kLine))) {
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

  // Runs below a piece that cannot be moved as one, each in as few moves as the compiler finds for its size.
  // False for longer ones.
  static bool move_few(const Rectangle& rectangle) {
    return [&]<size_t... kCounts>(std::index_sequence<kCounts...>) {
      return (... || move_few_of<(kCounts + 1) * kSize>(rectangle));
    }
    (std::make_index_sequence<(kPiece - 1) / kSize>());
  }

  template <int64_t kBytes>
  static bool move_few_of(const Rectangle& rectangle) {
    if (rectangle.rows * kSize != kBytes) return false;
    each_column(rectangle, [](uint8_t* to, const uint8_t* from) { std::memcpy(to, from, kBytes); });
    return true;
  }

  static void move_any(const Rectangle& rectangle) {
    // Lines that two runs share would be written to memory twice.
    const bool long_runs = rectangle.rows * kSize >= 1024;
    const Stores stores = long_runs ? rectangle.stores : Stores::kCached;
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
      if (end < Vector::kBytes / 2) {
        for (int64_t i = run; i < end; ++i) column[i] = 0;
        return;
      }
      Vector::zero_half(column);
      Vector::zero_half(column + end - Vector::kBytes / 2);
      return;
    }
    for (int64_t i = end - Vector::kBytes; i > run; i -= Vector::kBytes) Vector::zero(column + i);
    Vector::zero(column + std::min(run, end - Vector::kBytes));
  }
};

}  // namespace
}  // namespace tilework
