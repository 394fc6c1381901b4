// Transposes 4-bit elements. Rows are paired first: of two rows that lie below each other in a column of the
// destination, the low halves of their bytes make the bytes of the even columns, the high halves those of the
// odd columns. That takes no shuffle. What is left are two transposes of bytes, which end in the destination.
// Internal to each file, as transpose_places.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "reorder/box_transpose.h"

namespace tilework {
namespace {

template <class Bytes>
inline void pair_bytes(const uint8_t* first, const uint8_t* second, uint8_t* even, uint8_t* odd) {
  Bytes a;
  Bytes b;
  std::memcpy(&a, first, sizeof(a));
  std::memcpy(&b, second, sizeof(b));
  const Bytes low = (a & 0x0F) | (b << 4);
  const Bytes high = (a >> 4) | (b & 0xF0);
  std::memcpy(even, &low, sizeof(low));
  std::memcpy(odd, &high, sizeof(high));
}

// `bytes` is a register's at least; the last register may begin inside the one before.
template <class Bytes>
inline void pair_rows(const uint8_t* first, const uint8_t* second, int64_t bytes, uint8_t* even,
                      uint8_t* odd) {
  constexpr auto kStep = static_cast<int64_t>(sizeof(Bytes));
  for (int64_t i = 0; i < bytes; i += kStep) {
    const int64_t at = i + kStep <= bytes ? i : bytes - kStep;
    pair_bytes<Bytes>(first + at, second + at, even + at, odd + at);
  }
}

using Bytes16 = uint8_t __attribute__((vector_size(16)));
using Bytes32 = uint8_t __attribute__((vector_size(32)));

// A rectangle whose rows begin at source + places.rows[r], in bytes. `transpose` moves bytes.
inline void transpose_nibbles(const NibblePlaces& places, TransposeListed transpose, const uint8_t* source,
                              uint8_t* destination, uint8_t* pairs) {
  const int64_t bytes = places.row_bytes;
  const int64_t half = places.even.row_count * bytes;
  for (int64_t r = 0; r < places.even.row_count; ++r) {
    const uint8_t* first = source + places.rows[2 * r];
    const uint8_t* second = source + places.rows[2 * r + 1];
    uint8_t* even = pairs + r * bytes;
    if (bytes >= int64_t{sizeof(Bytes32)}) {
      pair_rows<Bytes32>(first, second, bytes, even, even + half);
    } else {
      pair_rows<Bytes16>(first, second, bytes, even, even + half);
    }
  }
  transpose(places.even, pairs, destination);
  transpose(places.odd, pairs + half, destination);
}

}  // namespace
}  // namespace tilework
