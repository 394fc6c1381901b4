// Runs: bytes that both sides keep together, at even distances. Internal to each file, as transpose_places.h.
#pragma once

#include <cstdint>

#include "memory/streaming_copy.h"
#include "reorder/leaf/cache_lines.h"

namespace tilework {
namespace {

// `count` runs. Run i moves from source + i * source_step to destination + i * destination_step, and
// `zero_bytes` zeros follow it there. All in bytes.
struct EvenRuns {
  const uint8_t* source;
  uint8_t* destination;
  int64_t count;
  int64_t bytes;
  int64_t zero_bytes;
  int64_t source_step;
  int64_t destination_step;
  Stores stores;
};

// Whether each run of the destination begins at a multiple of so many bytes.
inline bool are_runs_aligned(const EvenRuns& runs, int64_t unit) {
  return is_aligned(runs.destination, unit) && runs.destination_step % unit == 0;
}

// What stands in place of each run: `count` runs that follow each other in the destination and are
// `source_step` bytes apart in the source.
struct Chain {
  int64_t count;
  int64_t source_step;
};

}  // namespace
}  // namespace tilework
