// Lines of caches: where they begin, and how they are asked for before they are needed. Internal to each
// file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/cache.h"

namespace tilework {
namespace {

// Bytes from the last multiple of `unit` up to an address.
inline int64_t bytes_past(const uint8_t* at, int64_t unit) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(unit));
}

inline bool is_aligned(const uint8_t* at, int64_t unit) { return bytes_past(at, unit) == 0; }

// Elements of `size` bytes from an address to the next line; 0 where none of them begins a line.
inline int64_t elements_before_line(const uint8_t* at, int64_t size) {
  const int64_t past = bytes_past(at, kLineBytes);
  return past % size == 0 && past > 0 ? (kLineBytes - past) / size : 0;
}

// Cache levels as `__builtin_prefetch` takes them. Reads go to the second level: the first has other lines to
// keep.
constexpr int kFirstLevel = 3;
constexpr int kSecondLevel = 2;

// Prefetches the lines of a piece for reading.
[[gnu::always_inline]] inline void fetch_piece(const uint8_t* piece, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(piece + i, 0, kSecondLevel);
}

// Prefetches lines that are read or written soon, in an order that no hardware prefetcher predicts: a line
// that is far away stalls the stores behind it. All prefetches at once would stall loads, so each step issues
// its share.
template <bool kForWrite>
class LinePrefetcher {
 public:
  LinePrefetcher(const uint8_t* begin, int64_t bytes, int64_t steps)
      : next_(begin), end_(begin + bytes), bytes_a_step_((bytes / kLineBytes / steps + 1) * kLineBytes) {}

  void operator()() {
    const uint8_t* last = next_ + std::min<int64_t>(bytes_a_step_, end_ - next_);
    for (; next_ < last; next_ += kLineBytes)
      __builtin_prefetch(next_, kForWrite, kForWrite ? kFirstLevel : kSecondLevel);
  }

 private:
  const uint8_t* next_;
  const uint8_t* end_;
  int64_t bytes_a_step_;
};

}  // namespace
}  // namespace tilework
