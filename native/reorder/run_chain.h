// Chains of runs (rectangle.h): columns each of which has several runs, that follow each other in the
// destination. Internal to each file, as nest_walk.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "io/checked_math.h"
#include "reorder/cache_lines.h"
#include "reorder/rectangle.h"
#include "reorder/run_copy.h"

namespace tilework {
namespace {

// `Vector` as in run_copy.h; elements of `Unit`.
template <class Vector, class Unit>
class RunChain {
 public:
  // As many of the runs that go on as fill lines, and let lines of the source be used up before they leave
  // the first-level cache; beyond the caches a few more, as memory takes longer pieces faster. Of columns
  // that are too many for that, each pass reads as many places as processors follow. Runs of whole lines that
  // stay in the caches gain nothing.
  static bool move(const Rectangle& rectangle, const RectangleChain& chain) {
    if (chain.rest > 0) return move_with_rest(rectangle, chain);
    constexpr int64_t kManyColumns = 128;
    constexpr int64_t kFollowed = 8;
    constexpr int64_t kCachedBytes = 1 << 10;
    constexpr int64_t kStreamedBytes = 4 << 10;
    const bool streams = rectangle.stores == Stores::kStreaming;
    const int64_t run = rectangle.rows * kSize;
    const int64_t a_line = kLineBytes / std::gcd(kLineBytes, run);
    const int64_t kept = (streams ? kStreamedBytes : kCachedBytes) / (run * rectangle.columns);
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

 private:
  static constexpr int64_t kSize = sizeof(Unit);

  static void move_runs(const Rectangle& rectangle, const RectangleChain& chain) {
    const int64_t run = rectangle.rows * kSize;
    switch (run) {
      case 16:
        return move_fixed_runs<16>(rectangle, chain);
      case 32:
        return move_fixed_runs<32>(rectangle, chain);
      case 64:
        return move_fixed_runs<64>(rectangle, chain);
      default:
        if (with_short_size<kSize>(run, [&](auto size) { move_runs_of<size()>(rectangle, chain); })) return;
        return each_run(rectangle, chain, [run](uint8_t* to, const uint8_t* from) {
          copy_run<Vector>(to, from, run, Stores::kCached);
        });
    }
  }

  template <int64_t kBytes>
  [[gnu::noinline]] static void move_runs_of(const Rectangle& rectangle, const RectangleChain& chain) {
    each_run(rectangle, chain, [](uint8_t* to, const uint8_t* from) { std::memcpy(to, from, kBytes); });
  }

  // All runs of a column and the rest behind them, which is moved in pieces: what is too much of the last one
  // the next column writes over, and it comes from the hole behind the rest. False where columns have gaps,
  // or the hole is none that may be read.
  static bool move_with_rest(const Rectangle& rectangle, const RectangleChain& chain) {
    const int64_t run = rectangle.rows * kSize;
    const int64_t rest = chain.rest * kSize;
    const bool is_dense = rectangle.destination_column == chain.count * rectangle.rows + chain.rest;
    const bool has_hole = kSize <= 4 && rectangle.source_column >= rectangle.rows &&
                          ceil_div(rest, kHalfBytes) * kHalfBytes <= run;
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
      if constexpr (kRun > kHalfBytes) {
        for (int64_t k = kHalfBytes; k < rest; k += kHalfBytes) Vector::copy_half(to + k, behind + k);
      }
    }
    const uint8_t* behind = move_runs_of(from);
    copy_run<Vector>(to, behind, rest, Stores::kCached);
  }

  template <int64_t kBytes>
  static void move_fixed_runs(const Rectangle& rectangle, const RectangleChain& chain) {
    if constexpr (kBytes < Vector::kBytes) {
      each_run(rectangle, chain, [](uint8_t* to, const uint8_t* from) { Vector::copy_half(to, from); });
    } else if (rectangle.stores == Stores::kStreaming && are_columns_aligned(rectangle, kSize, kLineBytes) &&
               chain.count * kBytes % kLineBytes == 0) {
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
      lines_ = ceil_div(bytes, kLineBytes * rectangle.columns);
    }
    // A column's share.
    void fetch() {
      for (int64_t i = 0; i < lines_; ++i, next_ += kLineBytes) __builtin_prefetch(next_, 0, kSecondLevel);
    }

   private:
    const uint8_t* next_ = nullptr;
    int64_t lines_ = 0;
  };
};

}  // namespace
}  // namespace tilework
