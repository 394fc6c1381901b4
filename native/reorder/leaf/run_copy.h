// Copies runs: bytes that source and destination both keep together. Own loops, because the C library's
// memcpy has places where it is many times slower (`rep movsb` with source and destination a few bytes apart
// modulo a page), and chooses streaming stores by the size of one call, which of many short runs says
// nothing. Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "memory/streaming_copy.h"
#include "reorder/leaf/cache_lines.h"
#include "reorder/leaf/lanes.h"

namespace tilework {
namespace {

// A run of a constant number of vectors.
template <int64_t kBytes>
[[gnu::always_inline]] inline void copy_whole(uint8_t* destination, const uint8_t* source) {
  for (int64_t i = 0; i < kBytes; i += kVectorBytes) copy32(destination + i, source + i);
}

template <int64_t kBytes>
[[gnu::always_inline]] inline void stream_whole(uint8_t* destination, const uint8_t* source) {
  for (int64_t i = 0; i < kBytes; i += kVectorBytes) stream32(destination + i, source + i);
}

// Overlapping pieces instead of a loop over single bytes; 0 < size < 64.
inline void copy_short(uint8_t* destination, const uint8_t* source, int64_t size) {
  const auto ends = [&](auto copy, int64_t piece) {
    copy(destination, source);
    copy(destination + size - piece, source + size - piece);
  };
  if (size >= kVectorBytes) {
    ends([](uint8_t* to, const uint8_t* from) { copy32(to, from); }, kVectorBytes);
  } else if (size >= kHalfBytes) {
    ends([](uint8_t* to, const uint8_t* from) { copy16(to, from); }, kHalfBytes);
  } else if (size >= 8) {
    for (int64_t i = 0; i + 8 <= size; i += 8) std::memcpy(destination + i, source + i, 8);
    std::memcpy(destination + size - 8, source + size - 8, 8);
  } else if (size >= 4) {
    ends([](uint8_t* to, const uint8_t* from) { std::memcpy(to, from, 4); }, 4);
  } else {
    for (int64_t i = 0; i < size; ++i) destination[i] = source[i];
  }
}

// Calls `body` with a size below half a vector as a constant, for which the compiler finds the fewest moves;
// false for others.
template <class Body>
bool with_short_size(int64_t size, Body body) {
  const auto with_one = [&](auto constant) {
    if (size != constant) return false;
    body(constant);
    return true;
  };
  return [&]<size_t... kCounts>(std::index_sequence<kCounts...>) {
    return (... || with_one(std::integral_constant<int64_t, kCounts + 1>{}));
  }
  (std::make_index_sequence<kHalfBytes - 1>());
}

// Any size. Stores are aligned, as others take two lines each.
[[maybe_unused]] void copy_run(uint8_t* destination, const uint8_t* source, int64_t size, Stores stores) {
  if (size < 2 * kVectorBytes) {
    if (size > 0) copy_short(destination, source, size);
    return;
  }
  copy32(destination, source);
  int64_t i = (kVectorBytes - bytes_past(destination, kVectorBytes)) % kVectorBytes;
  if (stores == Stores::kStreaming) {
    for (; i + kVectorBytes <= size; i += kVectorBytes) stream32(destination + i, source + i);
  } else {
    for (; i + 4 * kVectorBytes <= size; i += 4 * kVectorBytes) {
      for (int64_t k = 0; k < 4 * kVectorBytes; k += kVectorBytes)
        copy32(destination + i + k, source + i + k);
    }
    for (; i + kVectorBytes <= size; i += kVectorBytes) copy32(destination + i, source + i);
  }
  if (i < size) copy32(destination + size - kVectorBytes, source + size - kVectorBytes);
}

}  // namespace
}  // namespace tilework
