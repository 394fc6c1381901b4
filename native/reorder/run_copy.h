// Copies runs: bytes that source and destination both keep together. Own loops, because the C library's
// memcpy has places where it is many times slower (`rep movsb` with source and destination a few bytes apart
// modulo a page), and chooses streaming stores by the size of one call, which of many short runs says
// nothing. Internal to each file, as transpose_places.h. An instruction set brings its vectors:
//
//   struct Vector {
//     static constexpr int64_t kBytes = 2 * kHalfBytes;
//     static void copy(uint8_t* destination, const uint8_t* source);     // kBytes
//     static void copy_half(uint8_t* destination, const uint8_t* source);
//     static void stream(uint8_t* destination, const uint8_t* source);   // to an aligned place
//     static void zero(uint8_t* destination);                            // kBytes
//     static void zero_half(uint8_t* destination);
//   };
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "memory/streaming_copy.h"
#include "reorder/cache_lines.h"

namespace tilework {
namespace {

// Half a vector.
constexpr int64_t kHalfBytes = 16;

// A run of a constant number of vectors.
template <class Vector, int64_t kBytes>
[[gnu::always_inline]] inline void copy_whole(uint8_t* destination, const uint8_t* source) {
  for (int64_t i = 0; i < kBytes; i += Vector::kBytes) Vector::copy(destination + i, source + i);
}

template <class Vector, int64_t kBytes>
[[gnu::always_inline]] inline void stream_whole(uint8_t* destination, const uint8_t* source) {
  for (int64_t i = 0; i < kBytes; i += Vector::kBytes) Vector::stream(destination + i, source + i);
}

// Overlapping pieces instead of a loop over single bytes; 0 < size < 2 * kBytes of a vector.
template <class Vector>
void copy_short(uint8_t* destination, const uint8_t* source, int64_t size) {
  constexpr int64_t kVector = Vector::kBytes;
  static_assert(kVector == 2 * kHalfBytes);
  const auto ends = [&](auto copy, int64_t piece) {
    copy(destination, source);
    copy(destination + size - piece, source + size - piece);
  };
  if (size >= kVector) {
    ends([](uint8_t* to, const uint8_t* from) { Vector::copy(to, from); }, kVector);
  } else if (size >= kHalfBytes) {
    ends([](uint8_t* to, const uint8_t* from) { Vector::copy_half(to, from); }, kHalfBytes);
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
template <class Vector>
void copy_run(uint8_t* destination, const uint8_t* source, int64_t size, Stores stores) {
  constexpr int64_t kVector = Vector::kBytes;
  if (size < 2 * kVector) {
    if (size > 0) copy_short<Vector>(destination, source, size);
    return;
  }
  Vector::copy(destination, source);
  int64_t i = (kVector - bytes_past(destination, kVector)) % kVector;
  if (stores == Stores::kStreaming) {
    for (; i + kVector <= size; i += kVector) Vector::stream(destination + i, source + i);
  } else {
    for (; i + 4 * kVector <= size; i += 4 * kVector) {
      for (int64_t k = 0; k < 4 * kVector; k += kVector) Vector::copy(destination + i + k, source + i + k);
    }
    for (; i + kVector <= size; i += kVector) Vector::copy(destination + i, source + i);
  }
  if (i < size) Vector::copy(destination + size - kVector, source + size - kVector);
}

}  // namespace
}  // namespace tilework
