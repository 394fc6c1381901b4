// The kernels of resample.h in plain C++, which compilers vectorise for the baseline of the architecture.
#include <algorithm>
#include <cstring>

#include "image/resample.h"

namespace tilework {
namespace {

// Sums that stay in the first-level cache.
constexpr int64_t kBlock = 256;

uint8_t clip8(int32_t value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

int32_t half(const IntegerTaps& taps) { return taps.shift == 0 ? 0 : 1 << (taps.shift - 1); }

template <int kChannels>
void columns_of(const uint8_t* source, uint8_t* destination, const IntegerTaps& taps) {
  const int32_t rounding = half(taps);
  for (size_t i = 0; i < taps.first.size(); ++i, destination += kChannels) {
    const int32_t* weights = taps.weight(static_cast<int64_t>(i));
    const uint8_t* from = source + int64_t{taps.first[i]} * kChannels;
    int32_t sums[kChannels];
    for (int32_t& sum : sums) sum = rounding;
    for (int32_t x = 0; x < taps.count[i]; ++x, from += kChannels) {
      for (int c = 0; c < kChannels; ++c) sums[c] += from[c] * weights[x];
    }
    for (int c = 0; c < kChannels; ++c) destination[c] = clip8(sums[c] >> taps.shift);
  }
}

template <int kChannels>
void linear_columns_of(const uint8_t* source, int16_t* destination, const LinearTaps& taps) {
  for (size_t i = 0; i < taps.low.size(); ++i, destination += kChannels) {
    const uint8_t* low = source + int64_t{taps.low[i]} * kChannels;
    const uint8_t* high = source + int64_t{taps.high[i]} * kChannels;
    const int32_t low_weight = taps.weights[2 * i];
    const int32_t high_weight = taps.weights[2 * i + 1];
    for (int c = 0; c < kChannels; ++c) {
      destination[c] = static_cast<int16_t>((low[c] * low_weight + high[c] * high_weight) >> 4);
    }
  }
}

template <int kChannels>
void half_of(const HalfRow& row) {
  const uint8_t* above = row.above;
  const uint8_t* below = row.below;
  uint8_t* to = row.destination;
  for (int64_t x = 0; x < row.count; ++x, above += 2 * kChannels, below += 2 * kChannels, to += kChannels) {
    for (int c = 0; c < kChannels; ++c) {
      const int sum = above[c] + above[c + kChannels] + below[c] + below[c + kChannels];
      to[c] = static_cast<uint8_t>((sum + 2) >> 2);
    }
  }
}

}  // namespace

void resample_columns(const RowPair& pair, const IntegerTaps& taps) {
  const int rows = pair.destination[0] == pair.destination[1] ? 1 : 2;
  for (int row = 0; row < rows; ++row) {
    const uint8_t* source = pair.source[row];
    uint8_t* destination = pair.destination[row];
    if (pair.channels == 1) columns_of<1>(source, destination, taps);
    if (pair.channels == 2) columns_of<2>(source, destination, taps);
    if (pair.channels == 3) columns_of<3>(source, destination, taps);
    if (pair.channels == 4) columns_of<4>(source, destination, taps);
  }
}

void resample_rows(const RowSum& sum, const IntegerTaps& taps, int64_t result) {
  const int32_t* weights = taps.weight(result);
  const int32_t count = taps.count[static_cast<size_t>(result)];
  int32_t totals[kBlock];
  for (int64_t at = 0; at < sum.bytes; at += kBlock) {
    const int64_t block = std::min(kBlock, sum.bytes - at);
    std::fill_n(totals, block, half(taps));
    for (int32_t y = 0; y < count; ++y) {
      const uint8_t* row = sum.rows[y] + at;
      const int32_t weight = weights[y];
      for (int64_t i = 0; i < block; ++i) totals[i] += row[i] * weight;
    }
    for (int64_t i = 0; i < block; ++i) sum.destination[at + i] = clip8(totals[i] >> taps.shift);
  }
}

void resample_linear_columns(const uint8_t* source, int64_t, int16_t* destination, int64_t channels,
                             const LinearTaps& taps) {
  if (channels == 1) linear_columns_of<1>(source, destination, taps);
  if (channels == 2) linear_columns_of<2>(source, destination, taps);
  if (channels == 3) linear_columns_of<3>(source, destination, taps);
  if (channels == 4) linear_columns_of<4>(source, destination, taps);
}

void resample_linear_rows(const RowBlend& blend) {
  const int32_t low_weight = blend.low_weight;
  const int32_t high_weight = blend.high_weight;
  for (int64_t i = 0; i < blend.count; ++i) {
    const int32_t low = blend.low[i] * low_weight >> 16;
    const int32_t high = blend.high[i] * high_weight >> 16;
    blend.destination[i] = clip8((low + high + 2) >> 2);
  }
}

void resample_half(const HalfRow& row) {
  if (row.channels == 1) half_of<1>(row);
  if (row.channels == 2) half_of<2>(row);
  if (row.channels == 3) half_of<3>(row);
  if (row.channels == 4) half_of<4>(row);
}

// A fused multiply-add is a call where the baseline has none, so numbers come from the table.
void resample_plane(const PlaneRow& row) {
  const uint8_t* sample = row.pixels + row.sample;
  const float* table = row.table;
  for (int64_t x = 0; x < row.count; ++x, sample += row.channels) row.destination[x] = table[*sample];
}

}  // namespace tilework
