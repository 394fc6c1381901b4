// Leaves of AVX2 that are its own: interleaving a few rows, deinterleaving a few columns, and packing every
// n-th unit. Included only by files that are compiled for AVX2.
#pragma once

#include <algorithm>
#include <cstring>

#include "reorder/panel_steps.h"
#include "reorder/registers_avx2.h"

namespace tilework {
namespace {

// Interleaves a few rows whose units follow each other without gaps in the destination.
template <class T, int kCount>
void zip_rows(const Panel& panel) {
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

// Every `step`-th unit, side by side. Reads no byte behind the last one.
template <class T, int kSlots>
void pack_slots(const uint8_t* source, uint8_t* packed, int64_t count) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kWidth = 32 / kSize;
  int64_t i = 0;
  for (; i + kWidth < count; i += kWidth) {
    __m256i slots[kSlots];
    const uint8_t* from = source + i * kSlots * kSize;
    for (int k = 0; k < kSlots; ++k) slots[k] = load_lanes(from + k * 16, from + (kSlots + k) * 16);
    take_apart<kSize>(slots);
    store32(packed + i * kSize, slots[0]);
  }
  for (; i < count; ++i) std::memcpy(packed + i * kSize, source + i * kSlots * kSize, kSize);
}

}  // namespace
}  // namespace tilework
