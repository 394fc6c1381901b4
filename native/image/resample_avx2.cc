// The kernels of resample.h for AVX2. Samples become 16-bit numbers in pairs, a pair of taps each, and one
// instruction multiplies both by their weights and adds them up. Weights of 22 bits do not fit 16, so each is
// high * 2^12 + low, and the sums of both halves are put together: exact, at twice the multiplications.
// Only this file is compiled for them.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "cpu/registers_avx2.h"
#include "image/resample.h"

namespace tilework {
namespace {

// Bytes that a load of two pixels reads.
constexpr int64_t kLoad = 16;
// And one of samples of one channel.
constexpr int64_t kGreyLoad = 8;

TILEWORK_INLINE __m256i twice(int32_t pair) { return _mm256_set1_epi32(pair); }

// Sums of products of pairs, by weights of 16 bits or of two halves.
template <bool kIsNarrow>
struct Sums {
  __m256i low = _mm256_setzero_si256();
  __m256i high = _mm256_setzero_si256();

  // `pairs` as IntegerTaps::pairs has them.
  TILEWORK_INLINE void add(__m256i samples, const int32_t* pairs) {
    low = _mm256_add_epi32(low, _mm256_madd_epi16(samples, twice(pairs[0])));
    if constexpr (!kIsNarrow) high = _mm256_add_epi32(high, _mm256_madd_epi16(samples, twice(pairs[1])));
  }
  TILEWORK_INLINE __m256i shifted(__m256i rounding, __m128i shift) const {
    const __m256i sum = kIsNarrow ? low : _mm256_add_epi32(low, _mm256_slli_epi32(high, 12));
    return _mm256_sra_epi32(_mm256_add_epi32(sum, rounding), shift);
  }
};

TILEWORK_INLINE __m256i rounding_of(const IntegerTaps& taps) {
  return twice(taps.shift == 0 ? 0 : 1 << (taps.shift - 1));
}

// The first results whose loads, which begin at a sample that they read, stay within the row: the last sample
// of a result only grows from one to the next.
int64_t safe_results(const IntegerTaps& taps, int64_t channels, int64_t source_bytes, int64_t load) {
  int64_t results = taps.results();
  while (results > 0) {
    const auto last = static_cast<size_t>(results - 1);
    const int64_t sample = int64_t{taps.first[last]} + taps.count[last] - 1;
    if (sample * channels + load <= source_bytes) break;
    --results;
  }
  return results;
}

TILEWORK_INLINE __m256i load_lanes(const uint8_t* low, const uint8_t* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low)), load16(high), 1);
}

// Of the pixels in each lane two, from pixel kFirst on: samples of a channel side by side as 16-bit numbers.
template <int kChannels, int kFirst>
TILEWORK_INLINE __m256i pixels_of(__m256i bytes) {
  constexpr char a = kFirst * kChannels;
  constexpr char b = a + kChannels;
  constexpr char last_a = kChannels == 3 ? -1 : a + 3;
  constexpr char last_b = kChannels == 3 ? -1 : b + 3;
  const __m128i order =
      _mm_setr_epi8(a, -1, b, -1, a + 1, -1, b + 1, -1, a + 2, -1, b + 2, -1, last_a, -1, last_b, -1);
  return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(order));
}

// Two pixels of each row, a row in each lane.
template <int kChannels>
TILEWORK_INLINE __m256i pixel_pairs(const uint8_t* first, const uint8_t* second) {
  return pixels_of<kChannels, 0>(load_lanes(first, second));
}

// Stores of four bytes may write one behind a pixel of three, which the next pixel writes again.
template <int kChannels, bool kIsNarrow>
void columns_of_pixels(const RowPair& pair, const IntegerTaps& taps, int64_t results) {
  constexpr int64_t kNumbers = kIsNarrow ? 1 : 2;
  const __m256i rounding = rounding_of(taps);
  const __m128i shift = _mm_cvtsi32_si128(taps.shift);
  const int64_t stride = taps.stride / 2 * kNumbers;
  const int32_t* weights = taps.pairs.data();
  const int32_t* firsts = taps.first.data();
  const int32_t* counts = taps.count.data();
  uint8_t* to[2] = {pair.destination[0], pair.destination[1]};
  for (int64_t i = 0; i < results; ++i, weights += stride) {
    const int64_t at = int64_t{firsts[i]} * kChannels;
    const uint8_t* first = pair.source[0] + at;
    const uint8_t* second = pair.source[1] + at;
    Sums<kIsNarrow> sums;
    const int64_t pairs = (counts[i] + 1) / 2;
    int64_t p = 0;
    // A load holds four pixels.
    for (; p + 2 <= pairs; p += 2, first += 4 * kChannels, second += 4 * kChannels) {
      const __m256i bytes = load_lanes(first, second);
      sums.add(pixels_of<kChannels, 0>(bytes), weights + p * kNumbers);
      sums.add(pixels_of<kChannels, 2>(bytes), weights + (p + 1) * kNumbers);
    }
    if (p < pairs) sums.add(pixel_pairs<kChannels>(first, second), weights + p * kNumbers);
    const __m256i numbers = sums.shifted(rounding, shift);
    const __m256i words = _mm256_packs_epi32(numbers, numbers);
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const int low = _mm256_extract_epi32(bytes, 0);
    const int high = _mm256_extract_epi32(bytes, 4);
    std::memcpy(to[0] + i * kChannels, &low, 4);
    std::memcpy(to[1] + i * kChannels, &high, 4);
  }
}

// The weights of four pairs of taps, in each lane.
struct PairWeights {
  __m256i low;
  __m256i high;
};

template <bool kIsNarrow>
TILEWORK_INLINE PairWeights four_pairs(const int32_t* pairs, int64_t first) {
  const auto* at = reinterpret_cast<const uint8_t*>(pairs + (kIsNarrow ? first : 2 * first));
  if constexpr (kIsNarrow) {
    return {_mm256_broadcastsi128_si256(load16(at)), _mm256_setzero_si256()};
  } else {
    const __m128 a = _mm_castsi128_ps(load16(at));
    const __m128 b = _mm_castsi128_ps(load16(at + 16));
    return {_mm256_broadcastsi128_si256(_mm_castps_si128(_mm_shuffle_ps(a, b, 0x88))),
            _mm256_broadcastsi128_si256(_mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd)))};
  }
}

// One channel: eight samples of each row at a time, whose pairs have weights of their own.
template <bool kIsNarrow>
void columns_of_grey(const RowPair& pair, const IntegerTaps& taps, int64_t results) {
  const int64_t stride = taps.stride / 2;
  const __m256i rounding = rounding_of(taps);
  const __m128i shift = _mm_cvtsi32_si128(taps.shift);
  for (int64_t i = 0; i < results; ++i) {
    const auto at = static_cast<size_t>(i);
    Sums<kIsNarrow> sums;
    for (int64_t x = 0; x < taps.count[at]; x += kGreyLoad) {
      const int64_t place = taps.first[at] + x;
      const __m256i samples = _mm256_cvtepu8_epi16(
          _mm_unpacklo_epi64(load8(pair.source[0] + place), load8(pair.source[1] + place)));
      const PairWeights weights = four_pairs<kIsNarrow>(taps.pairs.data(), i * stride + x / 2);
      sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(samples, weights.low));
      if constexpr (!kIsNarrow)
        sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(samples, weights.high));
    }
    const auto fold = [](__m256i sum) {
      const __m256i two = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0x4e));
      return _mm256_add_epi32(two, _mm256_shuffle_epi32(two, 0xb1));
    };
    sums.low = fold(sums.low);
    if constexpr (!kIsNarrow) sums.high = fold(sums.high);
    const __m256i number = sums.shifted(rounding, shift);
    pair.destination[0][i] = static_cast<uint8_t>(std::clamp(_mm256_extract_epi32(number, 0), 0, 255));
    pair.destination[1][i] = static_cast<uint8_t>(std::clamp(_mm256_extract_epi32(number, 4), 0, 255));
  }
}

// The results from `begin` on, whose loads would leave the row.
template <int kChannels>
void columns_at_end(const RowPair& pair, const IntegerTaps& taps, int64_t begin) {
  const int32_t rounding = taps.shift == 0 ? 0 : 1 << (taps.shift - 1);
  for (int row = 0; row < 2; ++row) {
    for (int64_t i = begin; i < taps.results(); ++i) {
      const auto at = static_cast<size_t>(i);
      for (int c = 0; c < kChannels; ++c) {
        const uint8_t* from = pair.source[row] + int64_t{taps.first[at]} * kChannels + c;
        int32_t sum = rounding;
        for (int32_t x = 0; x < taps.count[at]; ++x) sum += from[x * kChannels] * taps.weight(i)[x];
        pair.destination[row][i * kChannels + c] =
            static_cast<uint8_t>(std::clamp(sum >> taps.shift, 0, 255));
      }
    }
  }
}

template <int kChannels>
void columns_of(const RowPair& pair, const IntegerTaps& taps) {
  const int64_t safe = safe_results(taps, kChannels, pair.source_bytes, kLoad);
  // Stores of the last result would write a byte behind the row, which is the caller's padding.
  if (taps.is_narrow) {
    columns_of_pixels<kChannels, true>(pair, taps, safe);
  } else {
    columns_of_pixels<kChannels, false>(pair, taps, safe);
  }
  columns_at_end<kChannels>(pair, taps, safe);
}

void columns_of_one(const RowPair& pair, const IntegerTaps& taps) {
  const int64_t safe = safe_results(taps, 1, pair.source_bytes, kGreyLoad);
  if (taps.is_narrow) {
    columns_of_grey<true>(pair, taps, safe);
  } else {
    columns_of_grey<false>(pair, taps, safe);
  }
  columns_at_end<1>(pair, taps, safe);
}

// 32 bytes of two rows, and their sums in the four registers that hold 32 sums.
template <bool kIsNarrow>
TILEWORK_INLINE void add_rows(Sums<kIsNarrow> (&sums)[4], __m256i a, __m256i b, const int32_t* pairs) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i low = _mm256_unpacklo_epi8(a, b);
  const __m256i high = _mm256_unpackhi_epi8(a, b);
  sums[0].add(_mm256_unpacklo_epi8(low, zero), pairs);
  sums[1].add(_mm256_unpackhi_epi8(low, zero), pairs);
  sums[2].add(_mm256_unpacklo_epi8(high, zero), pairs);
  sums[3].add(_mm256_unpackhi_epi8(high, zero), pairs);
}

template <bool kIsNarrow>
TILEWORK_INLINE void rows_at(const RowSum& sum, const int32_t* pairs, int64_t count, int64_t at,
                             __m256i rounding, __m128i shift) {
  constexpr int64_t kNumbers = kIsNarrow ? 1 : 2;
  Sums<kIsNarrow> sums[4];
  int64_t y = 0;
  for (; y + 2 <= count; y += 2, pairs += kNumbers)
    add_rows<kIsNarrow>(sums, load32(sum.rows[y] + at), load32(sum.rows[y + 1] + at), pairs);
  if (y < count) add_rows<kIsNarrow>(sums, load32(sum.rows[y] + at), _mm256_setzero_si256(), pairs);
  const __m256i low = _mm256_packs_epi32(sums[0].shifted(rounding, shift), sums[1].shifted(rounding, shift));
  const __m256i high = _mm256_packs_epi32(sums[2].shifted(rounding, shift), sums[3].shifted(rounding, shift));
  store32(sum.destination + at, _mm256_packus_epi16(low, high));
}

template <bool kIsNarrow>
void sum_rows(const RowSum& sum, const IntegerTaps& taps, int64_t result) {
  constexpr int64_t kNumbers = kIsNarrow ? 1 : 2;
  const __m256i rounding = rounding_of(taps);
  const __m128i shift = _mm_cvtsi32_si128(taps.shift);
  const int64_t count = taps.count[static_cast<size_t>(result)];
  const int32_t* pairs = taps.pairs.data() + result * (taps.stride / 2) * kNumbers;
  for (int64_t at = 0; at < sum.bytes; at += 32)
    rows_at<kIsNarrow>(sum, pairs, count, std::min(at, sum.bytes - 32), rounding, shift);
}

// Two neighbouring pixels, a result in each lane.
template <int kChannels>
void linear_of(const uint8_t* source, int16_t* destination, const LinearTaps& taps, int64_t results) {
  const int32_t* lows = taps.low.data();
  const int16_t* weights = taps.weights.data();
  for (int64_t i = 0; i + 2 <= results; i += 2) {
    int32_t pair[2];
    std::memcpy(pair, weights + 2 * i, sizeof(pair));
    const __m256i samples = pixel_pairs<kChannels>(source + int64_t{lows[i]} * kChannels,
                                                   source + int64_t{lows[i + 1]} * kChannels);
    const __m256i weight =
        _mm256_setr_epi32(pair[0], pair[0], pair[0], pair[0], pair[1], pair[1], pair[1], pair[1]);
    const __m256i numbers = _mm256_srai_epi32(_mm256_madd_epi16(samples, weight), 4);
    const __m256i words = _mm256_packs_epi32(numbers, numbers);
    const int64_t low = _mm256_extract_epi64(words, 0);
    const int64_t high = _mm256_extract_epi64(words, 2);
    std::memcpy(destination + i * kChannels, &low, 8);
    std::memcpy(destination + (i + 1) * kChannels, &high, 8);
  }
}

template <int kChannels>
void linear_columns_of(const uint8_t* source, int64_t source_bytes, int16_t* destination,
                       const LinearTaps& taps) {
  auto results = static_cast<int64_t>(taps.low.size());
  while (results > 0 &&
         int64_t{taps.low[static_cast<size_t>(results - 1)]} * kChannels + kLoad > source_bytes) {
    --results;
  }
  results -= results % 2;
  linear_of<kChannels>(source, destination, taps, results);
  for (auto i = static_cast<size_t>(results); i < taps.low.size(); ++i) {
    for (int64_t c = 0; c < kChannels; ++c) {
      const int32_t low = source[taps.low[i] * int64_t{kChannels} + c] * taps.weights[2 * i];
      const int32_t high = source[taps.high[i] * int64_t{kChannels} + c] * taps.weights[2 * i + 1];
      destination[static_cast<int64_t>(i) * kChannels + c] = static_cast<int16_t>((low + high) >> 4);
    }
  }
}

// Bytes of source pixels that make a lane of results, and which: samples of the same channel of two pixels
// beside each other, for sums of pairs. 16 bytes hold 4 pixels, or 2 of 3 channels after each other.
struct PairOrder {
  int64_t source_bytes;
  __m256i places;
};

PairOrder pair_order(int64_t channels) {
  const int64_t results = 8 / channels;
  alignas(16) int8_t places[16];
  std::memset(places, -1, sizeof(places));
  for (int64_t i = 0; i < results * channels; ++i) {
    const int64_t first = i / channels * 2 * channels + i % channels;
    places[2 * i] = static_cast<int8_t>(first);
    places[2 * i + 1] = static_cast<int8_t>(first + channels);
  }
  const __m128i lane = load16(reinterpret_cast<const uint8_t*>(places));
  return {2 * results * channels, _mm256_broadcastsi128_si256(lane)};
}

TILEWORK_INLINE void store8(uint8_t* at, __m128i value) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(at), value);
}

// The sample of four pixels of a lane as 32-bit numbers.
__m256i sample_places(int64_t channels, int64_t sample) {
  alignas(16) int8_t places[16];
  std::memset(places, -1, sizeof(places));
  for (int64_t x = 0; x < 4; ++x) places[4 * x] = static_cast<int8_t>(x * channels + sample);
  return _mm256_broadcastsi128_si256(load16(reinterpret_cast<const uint8_t*>(places)));
}

}  // namespace

void resample_columns_avx2(const RowPair& pair, const IntegerTaps& taps) {
  if (pair.channels == 1) return columns_of_one(pair, taps);
  if (pair.channels == 3) return columns_of<3>(pair, taps);
  if (pair.channels == 4) return columns_of<4>(pair, taps);
  resample_columns(pair, taps);
}

void resample_rows_avx2(const RowSum& sum, const IntegerTaps& taps, int64_t result) {
  if (sum.bytes < 32) return resample_rows(sum, taps, result);
  if (taps.is_narrow) {
    sum_rows<true>(sum, taps, result);
  } else {
    sum_rows<false>(sum, taps, result);
  }
}

void resample_linear_columns_avx2(const uint8_t* source, int64_t source_bytes, int16_t* destination,
                                  int64_t channels, const LinearTaps& taps) {
  if (channels == 3) return linear_columns_of<3>(source, source_bytes, destination, taps);
  if (channels == 4) return linear_columns_of<4>(source, source_bytes, destination, taps);
  resample_linear_columns(source, source_bytes, destination, channels, taps);
}

void resample_linear_rows_avx2(const RowBlend& blend) {
  const __m256i low_weight = _mm256_set1_epi16(blend.low_weight);
  const __m256i high_weight = _mm256_set1_epi16(blend.high_weight);
  const __m256i two = _mm256_set1_epi16(2);
  const auto blended = [&](int64_t at) {
    const __m256i low = load32(reinterpret_cast<const uint8_t*>(blend.low + at));
    const __m256i high = load32(reinterpret_cast<const uint8_t*>(blend.high + at));
    const __m256i sum =
        _mm256_add_epi16(_mm256_mulhi_epi16(low, low_weight), _mm256_mulhi_epi16(high, high_weight));
    return _mm256_srai_epi16(_mm256_add_epi16(sum, two), 2);
  };
  if (blend.count < 32) return resample_linear_rows(blend);
  for (int64_t i = 0; i < blend.count; i += 32) {
    const int64_t at = std::min(i, blend.count - 32);
    const __m256i packed = _mm256_packus_epi16(blended(at), blended(at + 16));
    store32(blend.destination + at, _mm256_permute4x64_epi64(packed, 0xd8));
  }
}

// Stores of eight bytes may write behind the results of a lane, which the next lane writes again.
void resample_half_avx2(const HalfRow& row) {
  const PairOrder order = pair_order(row.channels);
  const int64_t step = order.source_bytes;
  const int64_t source_bytes = 2 * row.count * row.channels;
  const __m256i ones = _mm256_set1_epi8(1);
  const __m256i two = _mm256_set1_epi16(2);
  const auto sums = [&](const uint8_t* at) {
    return _mm256_maddubs_epi16(_mm256_shuffle_epi8(load_lanes(at, at + step), order.places), ones);
  };
  int64_t at = 0;
  for (; at + step + 16 <= source_bytes; at += 2 * step) {
    const __m256i sum = _mm256_add_epi16(sums(row.above + at), sums(row.below + at));
    const __m256i means = _mm256_srli_epi16(_mm256_add_epi16(sum, two), 2);
    const __m256i bytes = _mm256_packus_epi16(means, means);
    store8(row.destination + at / 2, _mm256_castsi256_si128(bytes));
    store8(row.destination + (at + step) / 2, _mm256_extracti128_si256(bytes, 1));
  }
  const int64_t done = at / (2 * row.channels);
  resample_half({row.above + at, row.below + at, row.channels, row.destination + at / 2, row.count - done});
}

void resample_plane_avx2(const PlaneRow& row) {
  const __m256i places = sample_places(row.channels, row.sample);
  const __m256 scale = _mm256_set1_ps(row.scale);
  const __m256 offset = _mm256_set1_ps(row.offset);
  const int64_t step = 4 * row.channels;
  const int64_t source_bytes = row.count * row.channels;
  const uint8_t* pixels = row.pixels;
  int64_t x = 0;
  for (; (x + 4) * row.channels + 16 <= source_bytes; x += 8, pixels += 2 * step) {
    const __m256i samples = _mm256_shuffle_epi8(load_lanes(pixels, pixels + step), places);
    _mm256_storeu_ps(row.destination + x, _mm256_fmadd_ps(_mm256_cvtepi32_ps(samples), scale, offset));
  }
  PlaneRow tail = row;
  tail.pixels = pixels;
  tail.destination += x;
  tail.count -= x;
  resample_plane(tail);
}

}  // namespace tilework
