// Moves even runs, which zeros may follow in the destination. Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/leaf/even_runs.h"
#include "reorder/leaf/run_chain.h"
#include "reorder/leaf/run_copy.h"
#include "reorder/leaf/ways.h"

namespace tilework {
namespace {

struct RunKernel {
  static Way way_of(const EvenRuns& runs) { return streams(runs) ? Way::kStreamedRuns : Way::kRuns; }

  static void move(const EvenRuns& runs) {
    TILEWORK_TAKES(way_of(runs));
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
  static constexpr bool is_fixed(int64_t bytes) {
    return bytes == 16 || bytes == 32 || bytes == 64 || bytes == 128;
  }

  static bool streams(const EvenRuns& runs) {
    if (runs.stores != Stores::kStreaming) return false;
    if (!is_fixed(runs.bytes)) return runs.bytes >= kLongRunBytes;
    // Shorter runs fill lines together where they lie side by side.
    const bool is_dense = runs.destination_step == runs.bytes;
    const bool fills_lines = runs.bytes % kLineBytes == 0 || (is_dense && runs.bytes % kVectorBytes == 0);
    return fills_lines && are_runs_aligned(runs, std::min(runs.bytes, kLineBytes));
  }

  // The compiler unrolls runs of a known size.
  template <int64_t kBytes>
  static void move_fixed(const EvenRuns& runs) {
    if (streams(runs)) {
      each_column(runs, [](uint8_t* to, const uint8_t* from) { stream_whole<kBytes>(to, from); });
    } else if constexpr (kBytes < kVectorBytes) {
      TILEWORK_WAY("runs: fixed, half a vector");
      each_column(runs, [](uint8_t* to, const uint8_t* from) { copy16(to, from); });
    } else {
      TILEWORK_WAY("runs: fixed");
      each_column(runs, [](uint8_t* to, const uint8_t* from) { copy_whole<kBytes>(to, from); });
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
    const Stores stores = streams(runs) ? Stores::kStreaming : Stores::kCached;
    each_column(runs, [&](uint8_t* to, const uint8_t* from) { copy_run(to, from, runs.bytes, stores); });
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
    if (end < kVectorBytes) {
      if (end < kHalfBytes) {
        for (int64_t i = run; i < end; ++i) column[i] = 0;
        return;
      }
      zero16(column);
      zero16(column + end - kHalfBytes);
      return;
    }
    for (int64_t i = end - kVectorBytes; i > run; i -= kVectorBytes) zero32(column + i);
    zero32(column + std::min(run, end - kVectorBytes));
  }
};

}  // namespace
}  // namespace tilework
