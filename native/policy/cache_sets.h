// The first-level cache as kernels and plans reckon with it: 64 sets of 8 lines, for both sides of a reorder.
// Lines that share a few sets push each other out. Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "cpu/cache.h"
#include "policy/thresholds.h"

namespace tilework {
namespace {

constexpr int64_t kSets = 64;
// Lines so far apart, or a multiple of it, meet in one set.
constexpr int64_t kSetBytes = kSets * kLineBytes;

// Whether `count` lines that are `stride` bytes apart crowd a few sets: then a line leaves the cache before
// its second half is written.
inline bool crowds_sets(int64_t stride, int64_t count) {
  const int64_t lines = std::max<int64_t>(std::abs(stride) / kLineBytes, 1);
  const int64_t used = stride % kLineBytes == 0 ? kSets / std::min(lines & -lines, kSets) : kSets;
  return count > kFewWays.times(used);
}

}  // namespace
}  // namespace tilework
