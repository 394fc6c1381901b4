// Moves chains of runs (even_runs.h). Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/leaf/cache_lines.h"
#include "reorder/leaf/even_runs.h"
#include "reorder/leaf/run_copy.h"

namespace tilework {
namespace {

class RunChain {
 public:
  // As many of the runs that go on as fill lines, and let lines of the source be used up before they leave
  // the first-level cache; beyond the caches a few more, as memory takes longer pieces faster. Of columns
  // that are too many for that, each pass reads as many places as processors follow. Runs of whole lines that
  // stay in the caches gain nothing.
  static void move(const EvenRuns& runs, const Chain& chain) {
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
          copy_run(to, from, run, Stores::kCached);
        });
    }
  }

  template <int64_t kBytes>
  [[gnu::noinline]] static void move_runs_of(const EvenRuns& runs, const Chain& chain) {
    each_run(runs, chain, [](uint8_t* to, const uint8_t* from) { std::memcpy(to, from, kBytes); });
  }

  template <int64_t kBytes>
  static void move_fixed_runs(const EvenRuns& runs, const Chain& chain) {
    if constexpr (kBytes < kVectorBytes) {
      each_run(runs, chain, [](uint8_t* to, const uint8_t* from) { copy16(to, from); });
    } else if (runs.stores == Stores::kStreaming && are_runs_aligned(runs, kLineBytes) &&
               chain.count * kBytes % kLineBytes == 0) {
      TILEWORK_WAY("runs: chain, streamed");
      each_run(runs, chain, [](uint8_t* to, const uint8_t* from) { stream_whole<kBytes>(to, from); });
    } else {
      each_run(runs, chain, [](uint8_t* to, const uint8_t* from) { copy_whole<kBytes>(to, from); });
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
