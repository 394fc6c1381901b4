// Moves even runs, which zeros may follow in the destination. Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/even_runs.h"
#include "reorder/run_chain.h"
#include "reorder/run_copy.h"

namespace tilework {
namespace {

// `Vector` as in run_copy.h.
template <class Vector>
struct RunKernel {
  static void move(const EvenRuns& runs) {
    // Moved as half a vector, with what lies behind them in the source.
    if (runs.bytes < kHalfBytes && is_loose(runs)) return move_short(runs);
    switch (runs.bytes) {
      case 16:
        return move_fixed<16>(runs);
      case 32:
        return move_fixed<32>(runs);
      case 64:
        return move_fixed<64>(runs);
      case 128:
        return move_fixed<128>(runs);
      default:
        if (!move_few(runs)) move_any(runs);
    }
  }

 private:
  // Whether there is something behind each run but the last few: in the source the next one, and in the
  // destination zeros, or the next run, which is written later.
  static bool is_loose(const EvenRuns& runs) {
    const int64_t end = runs.bytes + runs.zero_bytes;
    const bool has_room = end >= kHalfBytes || runs.destination_step == end;
    return runs.source_step >= runs.bytes && has_room;
  }

  // Columns before the last few, whose pieces would reach behind the memory of the runs.
  static int64_t loose_columns(int64_t columns, int64_t column, int64_t run) {
    return run >= kHalfBytes ? columns : std::max<int64_t>(columns - ceil_div(kHalfBytes - run, column), 0);
  }

  static void move_short(const EvenRuns& runs) {
    const int64_t run = runs.bytes;
    const int64_t end = run + runs.zero_bytes;
    const int64_t loose = std::min(loose_columns(runs.count, runs.source_step, run),
                                   loose_columns(runs.count, runs.destination_step, end));
    const bool streams = runs.stores == Stores::kStreaming && end % kHalfBytes == 0 &&
                         runs.destination_step == runs.bytes + runs.zero_bytes &&
                         is_aligned(runs.destination, kHalfBytes);
    TILEWORK_WAY("runs: short, masked");
    if (streams) {
      TILEWORK_WAY("runs: short, streamed with zeros");
      move_masked<Zeros::kStreamed>(runs, loose, run, end);
    } else if (end >= Vector::kBytes) {
      move_masked<Zeros::kVectors>(runs, loose, run, end);
    } else {
      move_masked<Zeros::kHalves>(runs, loose, run, end);
    }
    EvenRuns rest = runs;
    rest.count -= loose;
    rest.source += loose * runs.source_step;
    rest.destination += loose * runs.destination_step;
    move_any(rest);
  }

  // How those behind a run are written.
  enum class Zeros { kHalves, kVectors, kStreamed };

  template <Zeros kZeros>
  [[gnu::noinline]] static void move_masked(const EvenRuns& runs, int64_t columns, int64_t run, int64_t end) {
    uint8_t mask[kHalfBytes] = {};
    std::memset(mask, 0xFF, static_cast<size_t>(run));
    const int64_t source_column = runs.source_step;
    const int64_t destination_column = runs.destination_step;
    const uint8_t* from = runs.source;
    uint8_t* to = runs.destination;
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
  static void move_fixed(const EvenRuns& runs) {
    // Shorter runs fill lines together where they lie side by side.
    const bool is_dense = runs.destination_step == kBytes;
    const bool fills_lines = kBytes % kLineBytes == 0 || (is_dense && kBytes % Vector::kBytes == 0);
    if (runs.stores == Stores::kStreaming && fills_lines &&
        are_runs_aligned(runs, std::min(kBytes, kLineBytes))) {
      TILEWORK_WAY("runs: fixed, streamed");
      each_column(runs, [](uint8_t* to, const uint8_t* from) { stream_whole<Vector, kBytes>(to, from); });
    } else if constexpr (kBytes < Vector::kBytes) {
      TILEWORK_WAY("runs: fixed, half a vector");
      each_column(runs, [](uint8_t* to, const uint8_t* from) { Vector::copy_half(to, from); });
    } else {
      TILEWORK_WAY("runs: fixed");
      each_column(runs, [](uint8_t* to, const uint8_t* from) { copy_whole<Vector, kBytes>(to, from); });
    }
  }

  // Runs below a piece that cannot be moved as one; false for longer ones.
  static bool move_few(const EvenRuns& runs) {
    return with_short_size(runs.bytes, [&](auto size) {
      TILEWORK_WAY("runs: short, one by one");
      each_column(runs,
                  [](uint8_t* to, const uint8_t* from) { std::memcpy(to, from, decltype(size)::value); });
    });
  }

  static void move_any(const EvenRuns& runs) {
    TILEWORK_WAY("runs: any size");
    const Stores stores = runs.bytes >= kLongRunBytes ? runs.stores : Stores::kCached;
    each_column(runs,
                [&](uint8_t* to, const uint8_t* from) { copy_run<Vector>(to, from, runs.bytes, stores); });
  }

  // A function of its own: among the loops around it there are no registers left for its places.
  template <class Body>
  [[gnu::noinline]] static void each_column(const EvenRuns& runs, Body body) {
    const int64_t run = runs.bytes;
    const int64_t zeros = runs.zero_bytes;
    const int64_t source_column = runs.source_step;
    const int64_t destination_column = runs.destination_step;
    const uint8_t* from = runs.source;
    uint8_t* to = runs.destination;
    int64_t c = runs.count;
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
