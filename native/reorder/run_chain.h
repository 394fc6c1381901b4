// Moves chains of runs (even_runs.h). Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/cache_lines.h"
#include "reorder/even_runs.h"
#include "reorder/run_copy.h"

namespace tilework {
namespace {

// `Vector` as in run_copy.h.
template <class Vector>
class RunChain {
 public:
  // As many of the runs that go on as fill lines, and let lines of the source be used up before they leave
  // the first-level cache; beyond the caches a few more, as memory takes longer pieces faster. Of columns
  // that are too many for that, each pass reads as many places as processors follow. Runs of whole lines that
  // stay in the caches gain nothing.
  static bool move(const EvenRuns& runs, const Chain& chain) {
    if (chain.rest_bytes > 0) return move_with_rest(runs, chain);
    TILEWORK_WAY("runs: chain");
    const bool streams = runs.stores == Stores::kStreaming;
    const int64_t run = runs.bytes;
    const int64_t a_line = kLineBytes / std::gcd(kLineBytes, run);
    const int64_t kept = (streams ? kStreamedRunBytes : kCachedRunBytes).value / (run * runs.count);
    const int64_t wanted = runs.count >= kManyRunColumns ? kFollowedRuns.value : std::max<int64_t>(kept, 1);
    const int64_t at_once = streams || a_line > 1 ? wanted + a_line - 1 : chain.count;
    for (int64_t first = 0; first < chain.count;) {
      Chain part = chain;
      part.count = std::min(at_once / a_line * a_line, chain.count - first);
      EvenRuns from = runs;
      from.source += first * chain.source_step;
      from.destination += first * runs.bytes;
      move_runs(from, part);
      first += part.count;
    }
    return true;
  }

 private:
  static void move_runs(const EvenRuns& runs, const Chain& chain) {
    const int64_t run = runs.bytes;
    switch (run) {
      case 16:
        return move_fixed_runs<16>(runs, chain);
      case 32:
        return move_fixed_runs<32>(runs, chain);
      case 64:
        return move_fixed_runs<64>(runs, chain);
      default:
        if (with_short_size(run, [&](auto size) { move_runs_of<size()>(runs, chain); })) return;
        return each_run(runs, chain, [run](uint8_t* to, const uint8_t* from) {
          copy_run<Vector>(to, from, run, Stores::kCached);
        });
    }
  }

  template <int64_t kBytes>
  [[gnu::noinline]] static void move_runs_of(const EvenRuns& runs, const Chain& chain) {
    each_run(runs, chain, [](uint8_t* to, const uint8_t* from) { std::memcpy(to, from, kBytes); });
  }

  // All runs of a column and the rest behind them, which is moved in pieces: what is too much of the last one
  // the next column writes over, and it comes from the hole behind the rest. False where columns have gaps,
  // or the hole is none that may be read.
  static bool move_with_rest(const EvenRuns& runs, const Chain& chain) {
    const int64_t run = runs.bytes;
    const int64_t rest = chain.rest_bytes;
    const bool is_dense = runs.destination_step == chain.count * runs.bytes + chain.rest_bytes;
    const bool has_hole = runs.source_step >= runs.bytes && ceil_div(rest, kHalfBytes) * kHalfBytes <= run;
    if (!is_dense || !has_hole) return false;
    TILEWORK_WAY("runs: chain with a rest that is written over");
    switch (run) {
      case 16:
        move_fixed_with_rest<16>(runs, chain);
        return true;
      case 32:
        move_fixed_with_rest<32>(runs, chain);
        return true;
      case 64:
        move_fixed_with_rest<64>(runs, chain);
        return true;
      default:
        return false;
    }
  }

  // One run is what short columns have, and a loop over it takes longer than the run.
  template <int64_t kRun>
  static void move_fixed_with_rest(const EvenRuns& runs, const Chain& chain) {
    if (chain.count == 1) {
      each_with_rest<kRun>(runs, chain, std::integral_constant<int64_t, 1>{});
    } else {
      each_with_rest<kRun>(runs, chain, chain.count);
    }
  }

  template <int64_t kRun, class Count>
  [[gnu::noinline]] static void each_with_rest(const EvenRuns runs, const Chain chain, Count count) {
    const int64_t rest = chain.rest_bytes;
    const int64_t source_stride = chain.source_step;
    const int64_t source_column = runs.source_step;
    const uint8_t* from = runs.source;
    uint8_t* to = runs.destination;
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
    for (int64_t c = 1; c < runs.count; ++c, from += source_column, to += rest) {
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
  static void move_fixed_runs(const EvenRuns& runs, const Chain& chain) {
    if constexpr (kBytes < Vector::kBytes) {
      each_run(runs, chain, [](uint8_t* to, const uint8_t* from) { Vector::copy_half(to, from); });
    } else if (runs.stores == Stores::kStreaming && are_runs_aligned(runs, kLineBytes) &&
               chain.count * kBytes % kLineBytes == 0) {
      TILEWORK_WAY("runs: chain, streamed");
      each_run(runs, chain, [](uint8_t* to, const uint8_t* from) { stream_whole<Vector, kBytes>(to, from); });
    } else {
      each_run(runs, chain, [](uint8_t* to, const uint8_t* from) { copy_whole<Vector, kBytes>(to, from); });
    }
  }

  template <class Body>
  static void each_run(const EvenRuns& runs, const Chain& chain, Body body) {
    const int64_t source_stride = chain.source_step;
    const int64_t run = runs.bytes;
    NextRuns next(runs, chain);
    for (int64_t c = 0; c < runs.count; ++c) {
      next.fetch();
      const uint8_t* from = runs.source + c * runs.source_step;
      uint8_t* to = runs.destination + c * runs.destination_step;
      for (int64_t i = 0; i < chain.count; ++i, from += source_stride, to += run) body(to, from);
    }
  }

  // Asks for the source of the runs that come next, where those of all columns are one piece of memory: their
  // steps from pixel to pixel are too wide for processors to follow.
  class NextRuns {
   public:
    NextRuns(const EvenRuns& runs, const Chain& chain) {
      const int64_t step = chain.source_step;
      const bool is_dense =
          runs.source_step == runs.bytes && runs.count * runs.source_step == chain.source_step;
      if (runs.stores != Stores::kStreaming || !is_dense) return;
      const int64_t bytes = chain.count * step;
      next_ = runs.source + bytes;
      lines_ = ceil_div(bytes, kLineBytes * runs.count);
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
