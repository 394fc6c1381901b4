// Leaves of AVX2 that are its own: interleaving a few rows, deinterleaving a few columns, and packing every
// n-th unit. Included only by files that are compiled for AVX2.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "policy/thresholds.h"
#include "reorder/panel_steps.h"
#include "reorder/registers_avx2.h"

namespace tilework {
namespace {

// Interleaves a few rows whose units follow each other without gaps in the destination.
template <class T, int kCount>
void zip_rows(const Panel& panel) {
  TILEWORK_WAY("zip");
  const Panel one = merged(panel);
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kWidth = 32 / kSize;
  const At row_at{one.row_at, one.row_stride};
  const int64_t valid = one.rows - one.zero_rows;
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    const uint8_t* from[kCount];
    for (int r = 0; r < kCount; ++r)
      from[r] = r < valid && row_at(r) != kNoSource ? source + row_at(r) : nullptr;
    for (int64_t c = 0; c < one.columns; c += kWidth) {
      const int64_t column = std::min(c, one.columns - kWidth);
      __m256i rows[kCount];
      for (int r = 0; r < kCount; ++r) {
        rows[r] = from[r] != nullptr ? load32(from[r] + column * kSize) : _mm256_setzero_si256();
      }
      interleave<kSize>(rows);
      uint8_t* to = destination + column * kCount * kSize;
      for (int r = 0; r < kCount; ++r) store16(to + r * 16, _mm256_castsi256_si128(rows[r]));
      for (int r = 0; r < kCount; ++r) store16(to + (kCount + r) * 16, _mm256_extracti128_si256(rows[r], 1));
    }
  });
}

// Deinterleaves a few columns whose units follow each other without gaps in the source.
template <class T, int kCount>
void unzip_columns(const Panel& panel) {
  TILEWORK_WAY("unzip");
  const Panel one = merged(panel);
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kWidth = 32 / kSize;
  const At column_at{one.column_at, one.column_stride};
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    uint8_t* to[kCount];
    for (int c = 0; c < kCount; ++c) to[c] = destination + column_at(c);
    for (int64_t r = 0; r < one.rows; r += kWidth) {
      const int64_t row = std::min(r, one.rows - kWidth);
      const uint8_t* from = source + row * kCount * kSize;
      __m256i pixels[kCount];
      for (int i = 0; i < kCount; ++i) pixels[i] = load_lanes(from + i * 16, from + (kCount + i) * 16);
      take_apart<kSize>(pixels);
      for (int c = 0; c < kCount; ++c) store32(to[c] + row * kSize, pixels[c]);
    }
  });
}

// Which bytes of each 16 of the source become which 16 bytes; 0x80 gives zero, so that all are put together
// by OR.
template <int kLoads>
using EveryShuffles = std::array<std::array<uint8_t, 16>, kLoads>;

// For every `kStep`-th unit, backwards if it is negative; the one at the lowest address stands at `before`.
template <int kSize, int kStep>
constexpr auto every_shuffles(int before) {
  constexpr int kLoads = kStep < 0 ? -kStep : kStep;
  EveryShuffles<kLoads> shuffles{};
  for (auto& load : shuffles) load.fill(0x80);
  for (int i = 0; i < 16; ++i) {
    const int unit = kStep < 0 ? 16 / kSize - 1 - i / kSize : i / kSize;
    const int from = before + unit * kLoads * kSize + i % kSize;
    shuffles[static_cast<size_t>(from / 16)][static_cast<size_t>(i)] = static_cast<uint8_t>(from % 16);
  }
  return shuffles;
}

// A register of every `kStep`-th unit. With each unit the others of its slot are read: those at higher
// addresses, or those at lower ones, as nothing may be read behind the last unit or before the first.
template <int kSize, int kStep, bool kHigher>
TILEWORK_INLINE __m256i load_every(const uint8_t* lowest) {
  constexpr int kLoads = kStep < 0 ? -kStep : kStep;
  constexpr int kBefore = kHigher ? 0 : (kLoads - 1) * kSize;
  static constexpr EveryShuffles<kLoads> kShuffles = every_shuffles<kSize, kStep>(kBefore);
  const uint8_t* low = lowest - kBefore + (kStep < 0 ? 16 * kLoads : 0);
  const uint8_t* high = lowest - kBefore + (kStep < 0 ? 0 : 16 * kLoads);
  __m256i made = _mm256_setzero_si256();
  for (int i = 0; i < kLoads; ++i) {
    const __m256i places = _mm256_broadcastsi128_si256(load16(kShuffles[static_cast<size_t>(i)].data()));
    made = _mm256_or_si256(made, _mm256_shuffle_epi8(load_lanes(low + 16 * i, high + 16 * i), places));
  }
  return made;
}

// Every `kStep`-th unit, side by side. Reads no byte outside of the units but between two of them.
template <class T, int kStep>
void pack_every(const uint8_t* source, uint8_t* packed, int64_t count) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kWidth = 32 / kSize;
  constexpr bool kIsForward = kStep > 0;
  const uint8_t* lowest = source + (kIsForward ? 0 : (kWidth - 1) * kStep * kSize);
  if (count <= kWidth) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(packed + i * kSize, source + i * kStep * kSize, kSize);
    return;
  }
  for (int64_t i = 0; i + kWidth < count; i += kWidth)
    store32(packed + i * kSize, load_every<kSize, kStep, kIsForward>(lowest + i * kStep * kSize));
  const int64_t last = count - kWidth;
  store32(packed + last * kSize, load_every<kSize, kStep, !kIsForward>(lowest + last * kStep * kSize));
}

}  // namespace
}  // namespace tilework
