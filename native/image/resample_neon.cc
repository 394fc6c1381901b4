// The kernels of resample.h for NEON, which every 64-bit ARM CPU has. A multiplication takes one weight for
// all channels of a pixel, so samples need no order of their own. Weights of 16 bits widen in the
// multiplication; Pillow's 22 bits take products of 32 bits, as many instructions with more to widen before.
#include <arm_neon.h>

#include <algorithm>
#include <cstring>

#include "image/resample.h"

namespace tilework {
namespace {

#define TILEWORK_INLINE [[gnu::always_inline]] inline

// Bytes that a load of two pixels, or of eight samples of one channel, reads.
constexpr int64_t kLoad = 8;

TILEWORK_INLINE int16x8_t words_of(uint8x8_t bytes) { return vreinterpretq_s16_u16(vmovl_u8(bytes)); }

template <bool kIsNarrow>
TILEWORK_INLINE int32x4_t plus_product(int32x4_t sum, int16x4_t samples, int32_t weight) {
  if constexpr (kIsNarrow) {
    return vmlal_n_s16(sum, samples, static_cast<int16_t>(weight));
  } else {
    return vmlaq_n_s32(sum, vmovl_s16(samples), weight);
  }
}

// clip8(sum >> shift), four sums in the low bytes.
TILEWORK_INLINE uint16x4_t shifted(int32x4_t sum, int32x4_t shift) {
  return vqmovun_s32(vshlq_s32(sum, shift));
}

int32_t rounding_of(const IntegerTaps& taps) { return taps.shift == 0 ? 0 : 1 << (taps.shift - 1); }

// Two pixels, four lanes each: the fourth of a pixel of three channels is the first of the next.
template <int kChannels>
TILEWORK_INLINE int16x8_t two_pixels(const uint8_t* at) {
  const uint8x8_t bytes = vld1_u8(at);
  if constexpr (kChannels == 4) return words_of(bytes);
  constexpr uint8_t kPlaces[] = {0, 1, 2, 3, 3, 4, 5, 6};
  return words_of(vtbl1_u8(bytes, vld1_u8(kPlaces)));
}

// The first results whose loads stay within the row: the last sample of a result only grows from one to the
// next.
int64_t safe_results(const IntegerTaps& taps, int64_t channels, int64_t source_bytes) {
  int64_t results = taps.results();
  while (results > 0) {
    const auto last = static_cast<size_t>(results - 1);
    const int64_t sample = int64_t{taps.first[last]} + taps.count[last] - 1;
    if (sample * channels + kLoad <= source_bytes) break;
    --results;
  }
  return results;
}

// Stores of four bytes may write one behind a pixel of three, which the next pixel writes again.
template <int kChannels, bool kIsNarrow>
void columns_of_pixels(const uint8_t* source, uint8_t* destination, const IntegerTaps& taps,
                       int64_t results) {
  const int32x4_t rounding = vdupq_n_s32(rounding_of(taps));
  const int32x4_t shift = vdupq_n_s32(-taps.shift);
  for (int64_t i = 0; i < results; ++i) {
    const auto at = static_cast<size_t>(i);
    const uint8_t* from = source + int64_t{taps.first[at]} * kChannels;
    const int32_t* weights = taps.weight(i);
    int32x4_t even = rounding;
    int32x4_t odd = vdupq_n_s32(0);
    // The weight behind an odd number of taps is 0.
    for (int32_t x = 0; x < taps.count[at]; x += 2, from += 2 * kChannels) {
      const int16x8_t pixels = two_pixels<kChannels>(from);
      even = plus_product<kIsNarrow>(even, vget_low_s16(pixels), weights[x]);
      odd = plus_product<kIsNarrow>(odd, vget_high_s16(pixels), weights[x + 1]);
    }
    const uint16x4_t words = shifted(vaddq_s32(even, odd), shift);
    const uint8x8_t bytes = vqmovn_u16(vcombine_u16(words, words));
    const uint32_t pixel = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
    std::memcpy(destination + i * kChannels, &pixel, sizeof(pixel));
  }
}

// One channel: eight samples at a time, each with its weight.
void columns_of_grey(const uint8_t* source, uint8_t* destination, const IntegerTaps& taps, int64_t results) {
  const int32_t rounding = rounding_of(taps);
  for (int64_t i = 0; i < results; ++i) {
    const auto at = static_cast<size_t>(i);
    const int32_t* weights = taps.weight(i);
    int32x4_t low = vdupq_n_s32(0);
    int32x4_t high = low;
    for (int32_t x = 0; x < taps.count[at]; x += kLoad) {
      const int16x8_t samples = words_of(vld1_u8(source + taps.first[at] + x));
      low = vmlaq_s32(low, vmovl_s16(vget_low_s16(samples)), vld1q_s32(weights + x));
      high = vmlaq_s32(high, vmovl_s16(vget_high_s16(samples)), vld1q_s32(weights + x + 4));
    }
    const int32_t sum = vaddvq_s32(vaddq_s32(low, high)) + rounding;
    destination[i] = static_cast<uint8_t>(std::clamp(sum >> taps.shift, 0, 255));
  }
}

// The results from `begin` on, whose loads would leave the row.
template <int kChannels>
void columns_at_end(const uint8_t* source, uint8_t* destination, const IntegerTaps& taps, int64_t begin) {
  for (int64_t i = begin; i < taps.results(); ++i) {
    const auto at = static_cast<size_t>(i);
    for (int c = 0; c < kChannels; ++c) {
      const uint8_t* from = source + int64_t{taps.first[at]} * kChannels + c;
      int32_t sum = rounding_of(taps);
      for (int32_t x = 0; x < taps.count[at]; ++x) sum += from[x * kChannels] * taps.weight(i)[x];
      destination[i * kChannels + c] = static_cast<uint8_t>(std::clamp(sum >> taps.shift, 0, 255));
    }
  }
}

template <int kChannels>
void columns_of(const RowPair& pair, const IntegerTaps& taps) {
  const int64_t safe = safe_results(taps, kChannels, pair.source_bytes);
  const int rows = pair.destination[0] == pair.destination[1] ? 1 : 2;
  for (int row = 0; row < rows; ++row) {
    const uint8_t* source = pair.source[row];
    uint8_t* destination = pair.destination[row];
    if constexpr (kChannels == 1) {
      columns_of_grey(source, destination, taps, safe);
    } else if (taps.is_narrow) {
      columns_of_pixels<kChannels, true>(source, destination, taps, safe);
    } else {
      columns_of_pixels<kChannels, false>(source, destination, taps, safe);
    }
    columns_at_end<kChannels>(source, destination, taps, safe);
  }
}

// 16 bytes of the sum.
template <bool kIsNarrow>
TILEWORK_INLINE void rows_at(const RowSum& sum, const int32_t* weights, int64_t count, int64_t at,
                             int32x4_t rounding, int32x4_t shift) {
  int32x4_t sums[4] = {rounding, rounding, rounding, rounding};
  for (int64_t y = 0; y < count; ++y) {
    const uint8x16_t bytes = vld1q_u8(sum.rows[y] + at);
    const int16x8_t low = words_of(vget_low_u8(bytes));
    const int16x8_t high = words_of(vget_high_u8(bytes));
    sums[0] = plus_product<kIsNarrow>(sums[0], vget_low_s16(low), weights[y]);
    sums[1] = plus_product<kIsNarrow>(sums[1], vget_high_s16(low), weights[y]);
    sums[2] = plus_product<kIsNarrow>(sums[2], vget_low_s16(high), weights[y]);
    sums[3] = plus_product<kIsNarrow>(sums[3], vget_high_s16(high), weights[y]);
  }
  const uint16x8_t low = vcombine_u16(shifted(sums[0], shift), shifted(sums[1], shift));
  const uint16x8_t high = vcombine_u16(shifted(sums[2], shift), shifted(sums[3], shift));
  vst1q_u8(sum.destination + at, vcombine_u8(vqmovn_u16(low), vqmovn_u16(high)));
}

template <bool kIsNarrow>
void sum_rows(const RowSum& sum, const IntegerTaps& taps, int64_t result) {
  const int32x4_t rounding = vdupq_n_s32(rounding_of(taps));
  const int32x4_t shift = vdupq_n_s32(-taps.shift);
  const int64_t count = taps.count[static_cast<size_t>(result)];
  for (int64_t at = 0; at < sum.bytes; at += 16)
    rows_at<kIsNarrow>(sum, taps.weight(result), count, std::min(at, sum.bytes - 16), rounding, shift);
}

template <int kChannels>
void linear_columns_of(const uint8_t* source, int64_t source_bytes, int16_t* destination,
                       const LinearTaps& taps) {
  auto safe = taps.low.size();
  while (safe > 0 && int64_t{taps.low[safe - 1]} * kChannels + kLoad > source_bytes) --safe;
  for (size_t i = 0; i < safe; ++i) {
    const int16x8_t pixels = two_pixels<kChannels>(source + int64_t{taps.low[i]} * kChannels);
    const int32x4_t low = vmull_n_s16(vget_low_s16(pixels), taps.weights[2 * i]);
    const int32x4_t both = vmlal_n_s16(low, vget_high_s16(pixels), taps.weights[2 * i + 1]);
    vst1_s16(destination + i * kChannels, vshrn_n_s32(both, 4));
  }
  for (size_t i = safe; i < taps.low.size(); ++i) {
    for (int64_t c = 0; c < kChannels; ++c) {
      const int32_t low = source[taps.low[i] * int64_t{kChannels} + c] * taps.weights[2 * i];
      const int32_t high = source[taps.high[i] * int64_t{kChannels} + c] * taps.weights[2 * i + 1];
      destination[static_cast<int64_t>(i) * kChannels + c] = static_cast<int16_t>((low + high) >> 4);
    }
  }
}

// The high halves of the products.
TILEWORK_INLINE int16x8_t high_products(int16x8_t values, int16_t weight) {
  const int16x4_t low = vshrn_n_s32(vmull_n_s16(vget_low_s16(values), weight), 16);
  return vcombine_s16(low, vshrn_n_s32(vmull_n_s16(vget_high_s16(values), weight), 16));
}

// Bytes of source pixels that make eight sums of pairs, and which: samples of the same channel of two pixels
// beside each other. The rest is 0.
struct PairOrder {
  int64_t source_bytes;
  uint8x16_t places;
};

PairOrder pair_order(int64_t channels) {
  const int64_t results = 8 / channels;
  uint8_t places[16];
  std::memset(places, 255, sizeof(places));
  for (int64_t i = 0; i < results * channels; ++i) {
    const int64_t first = i / channels * 2 * channels + i % channels;
    places[2 * i] = static_cast<uint8_t>(first);
    places[2 * i + 1] = static_cast<uint8_t>(first + channels);
  }
  return {2 * results * channels, vld1q_u8(places)};
}

// The sample of four pixels as 32-bit numbers.
uint8x16_t sample_places(int64_t channels, int64_t sample) {
  uint8_t places[16];
  std::memset(places, 255, sizeof(places));
  for (int64_t x = 0; x < 4; ++x) places[4 * x] = static_cast<uint8_t>(x * channels + sample);
  return vld1q_u8(places);
}

}  // namespace

void resample_columns_neon(const RowPair& pair, const IntegerTaps& taps) {
  if (pair.channels == 1) return columns_of<1>(pair, taps);
  if (pair.channels == 3) return columns_of<3>(pair, taps);
  if (pair.channels == 4) return columns_of<4>(pair, taps);
  resample_columns(pair, taps);
}

void resample_rows_neon(const RowSum& sum, const IntegerTaps& taps, int64_t result) {
  if (sum.bytes < 16) return resample_rows(sum, taps, result);
  if (taps.is_narrow) {
    sum_rows<true>(sum, taps, result);
  } else {
    sum_rows<false>(sum, taps, result);
  }
}

void resample_linear_columns_neon(const uint8_t* source, int64_t source_bytes, int16_t* destination,
                                  int64_t channels, const LinearTaps& taps) {
  if (channels == 3) return linear_columns_of<3>(source, source_bytes, destination, taps);
  if (channels == 4) return linear_columns_of<4>(source, source_bytes, destination, taps);
  resample_linear_columns(source, source_bytes, destination, channels, taps);
}

void resample_linear_rows_neon(const RowBlend& blend) {
  if (blend.count < 8) return resample_linear_rows(blend);
  for (int64_t i = 0; i < blend.count; i += 8) {
    const int64_t at = std::min(i, blend.count - 8);
    const int16x8_t low = high_products(vld1q_s16(blend.low + at), blend.low_weight);
    const int16x8_t high = high_products(vld1q_s16(blend.high + at), blend.high_weight);
    vst1_u8(blend.destination + at, vqrshrun_n_s16(vaddq_s16(low, high), 2));
  }
}

// Stores of eight bytes may write behind the results, which the next ones write again.
void resample_half_neon(const HalfRow& row) {
  const PairOrder order = pair_order(row.channels);
  const int64_t source_bytes = 2 * row.count * row.channels;
  const auto sums = [&](const uint8_t* at) { return vpaddlq_u8(vqtbl1q_u8(vld1q_u8(at), order.places)); };
  int64_t at = 0;
  for (; at + 16 <= source_bytes; at += order.source_bytes) {
    const uint16x8_t sum = vaddq_u16(sums(row.above + at), sums(row.below + at));
    vst1_u8(row.destination + at / 2, vrshrn_n_u16(sum, 2));
  }
  const int64_t done = at / (2 * row.channels);
  resample_half({row.above + at, row.below + at, row.channels, row.destination + at / 2, row.count - done});
}

void resample_plane_neon(const PlaneRow& row) {
  const uint8x16_t places = sample_places(row.channels, row.sample);
  const float32x4_t scale = vdupq_n_f32(row.scale);
  const float32x4_t offset = vdupq_n_f32(row.offset);
  const int64_t source_bytes = row.count * row.channels;
  const uint8_t* pixels = row.pixels;
  int64_t x = 0;
  for (; x * row.channels + 16 <= source_bytes; x += 4, pixels += 4 * row.channels) {
    const uint32x4_t samples = vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(pixels), places));
    vst1q_f32(row.destination + x, vfmaq_f32(offset, vcvtq_f32_u32(samples), scale));
  }
  PlaneRow tail = row;
  tail.pixels = pixels;
  tail.destination += x;
  tail.count -= x;
  resample_plane(tail);
}

}  // namespace tilework
