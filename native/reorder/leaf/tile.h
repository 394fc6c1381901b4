// A rectangle in bytes, and where its rows and columns stand. Internal to each file, as transpose_places.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "memory/streaming_copy.h"
#include "reorder/leaf/cache_lines.h"
#include "reorder/leaf/lanes.h"

namespace tilework {
namespace {

// A rectangle in bytes. Loops take it by value: stores of bytes may change any object that others can see, so
// its fields would be read again after each.
struct Tile {
  const uint8_t* source;
  uint8_t* destination;
  int64_t columns;
  // Rows of the destination; of these, `rows` - `zero_rows` have a source.
  int64_t rows;
  int64_t zero_rows;
  int64_t source_row;
  int64_t destination_column;
  Stores stores;
};

// Places of rows or columns, in bytes: one as far from the next as all others, or a list.
struct Strided {
  static constexpr bool kIsEven = true;
  int64_t stride;
  int64_t base = 0;
  int64_t operator()(int64_t i) const { return base + i * stride; }
  Strided from(int64_t i) const { return {stride, base + i * stride}; }
};

// Rows of a distance that the compiler knows, and needs no registers for.
template <int64_t kStride>
struct Spaced {
  static constexpr bool kIsEven = true;
  int64_t base = 0;
  int64_t operator()(int64_t i) const { return base + i * kStride; }
  Spaced from(int64_t i) const { return {base + i * kStride}; }
};

// As many places as a block has columns, which stay in registers.
template <int64_t kCount>
struct Few {
  int64_t places[kCount];
  template <class Columns>
  static Few of(Columns column_at) {
    Few few;
    for (int64_t i = 0; i < kCount; ++i) few.places[i] = column_at(i);
    return few;
  }
  int64_t operator()(int64_t i) const { return places[i]; }
};

struct Listed {
  static constexpr bool kIsEven = false;
  const int64_t* places;
  int64_t operator()(int64_t i) const { return places[i]; }
  Listed from(int64_t i) const { return {places + i}; }
};

// Either of them, where what is done at a place takes much longer than the question which it is.
struct At {
  const int64_t* list;
  int64_t stride;
  int64_t base = 0;
  int64_t operator()(int64_t i) const { return list == nullptr ? base + i * stride : list[i]; }
  At from(int64_t i) const {
    return list == nullptr ? At{nullptr, stride, base + i * stride} : At{list + i, stride};
  }
};

// A call of the C library's memcpy costs more than so few bytes.
[[gnu::always_inline]] inline void copy_piece(uint8_t* to, const uint8_t* from, int64_t bytes) {
  int64_t i = 0;
  for (; i + kVectorBytes <= bytes; i += kVectorBytes) copy32(to + i, from + i);
  if (i == bytes) return;
  if (bytes >= kVectorBytes) {
    copy32(to + bytes - kVectorBytes, from + bytes - kVectorBytes);
  } else {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

}  // namespace
}  // namespace tilework
