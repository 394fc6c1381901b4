#include "dtype/block_ranges.h"

#include <algorithm>

#include "io/checked_math.h"

namespace tilework {
namespace {

// Two vector registers of 4 for the minimum and two for the maximum.
constexpr int kRangeLanes = 8;

// The comparisons are false for NaN, which keeps what was there.
void extend_low(float& low, float value) { low = value < low ? value : low; }
void extend_high(float& high, float value) { high = value > high ? value : high; }

void extend_range(const float* numbers, int64_t count, float& min, float& max) {
  float low[kRangeLanes];
  float high[kRangeLanes];
  std::fill_n(low, kRangeLanes, min);
  std::fill_n(high, kRangeLanes, max);
  int64_t i = 0;
  // The compiler vectorises over lanes.
  for (; i + kRangeLanes <= count; i += kRangeLanes) {
    for (int lane = 0; lane < kRangeLanes; ++lane) {
      extend_low(low[lane], numbers[i + lane]);
      extend_high(high[lane], numbers[i + lane]);
    }
  }
  for (; i < count; ++i) {
    extend_low(low[0], numbers[i]);
    extend_high(high[0], numbers[i]);
  }
  for (int lane = 0; lane < kRangeLanes; ++lane) {
    extend_low(min, low[lane]);
    extend_high(max, high[lane]);
  }
}

}  // namespace

int64_t RowBlocks::block_of(int64_t element) const {
  return element / row_length * ceil_div(row_length, block_length) + element % row_length / block_length;
}

void extend_block_ranges(const RowBlocks& blocks, int64_t first, const float* numbers, int64_t count,
                         const BlockRanges& ranges) {
  int64_t block = blocks.block_of(first);
  int64_t row_left = blocks.row_length - first % blocks.row_length;
  int64_t block_left = blocks.block_length - first % blocks.row_length % blocks.block_length;
  for (int64_t at = 0; at < count; ++block) {
    const int64_t size = std::min({block_left, row_left, count - at});
    extend_range(numbers + at, size, ranges.min[block], ranges.max[block]);
    at += size;
    row_left -= size;
    if (row_left == 0) row_left = blocks.row_length;
    block_left = blocks.block_length;
  }
}

}  // namespace tilework
