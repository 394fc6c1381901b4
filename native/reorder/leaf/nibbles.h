// 4-bit elements, two a byte, low half first. Positions count half bytes. A write keeps the other half of its
// first and last byte. Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tilework {
namespace {

// 32 and 64 elements.
using Bytes16 = uint8_t __attribute__((vector_size(16)));
using Bytes32 = uint8_t __attribute__((vector_size(32)));

inline Bytes16 load_bytes16(const uint8_t* at) {
  Bytes16 bytes;
  std::memcpy(&bytes, at, sizeof(bytes));
  return bytes;
}

inline void store_bytes16(uint8_t* at, Bytes16 bytes) { std::memcpy(at, &bytes, sizeof(bytes)); }

inline unsigned nibble_at(const uint8_t* source, int64_t s) { return (source[s / 2] >> (s % 2 * 4)) & 15u; }

inline void set_nibble(uint8_t* destination, int64_t d, unsigned value) {
  const auto shift = static_cast<unsigned>(d % 2 * 4);
  uint8_t& byte = destination[d / 2];
  byte = static_cast<uint8_t>((byte & (0xF0u >> shift)) | value << shift);
}

inline Bytes16 load_nibbles32(const uint8_t* source, int64_t s) {
  const uint8_t* at = source + s / 2;
  const Bytes16 bytes = load_bytes16(at);
  return s % 2 == 0 ? bytes : (bytes >> 4) | (load_bytes16(at + 1) << 4);
}

// Fewer than 32; nothing behind them is read.
inline Bytes16 load_few_nibbles(const uint8_t* source, int64_t s, int64_t count) {
  uint8_t bytes[2 * sizeof(Bytes16)] = {};
  std::memcpy(bytes, source + s / 2, static_cast<size_t>((s % 2 + count + 1) / 2));
  return load_nibbles32(bytes, s % 2);
}

// Interleaved bytes: as many as there are elements in `low_halves` and `high_halves`.
inline void store_pairs(Bytes16 low_halves, Bytes16 high_halves, uint8_t* bytes) {
  const Bytes16 even = (low_halves & 15) | (high_halves << 4);
  const Bytes16 odd = (low_halves >> 4) | (high_halves & 0xF0);
  store_bytes16(bytes,
                __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  store_bytes16(bytes + sizeof(Bytes16), __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                                                 28, 13, 29, 14, 30, 15, 31));
}

// Pairs of rows are made rows of bytes and transposed in registers: 32 rows times 32 columns. A register has
// one pair of the first 16 rows in its low lane, and one of the others in its high lane.
struct NibbleBlock {
  static constexpr int64_t kPairs = 16;
  static constexpr int64_t kColumns = 32;

  // Row r begins at byte row_at(r) of the source, column c at byte column_at(c) of the destination.
  template <class Rows, class Columns>
  [[gnu::always_inline]] static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                               Columns column_at) {
    Bytes32 even[kHalf];
    Bytes32 odd[kHalf];
    for (int i = 0; i < kHalf; ++i) {
      Bytes32 low;
      Bytes32 high;
      load(source + row_at(2 * i), source + row_at(2 * (i + kHalf)), low);
      load(source + row_at(2 * i + 1), source + row_at(2 * (i + kHalf) + 1), high);
      even[i] = (low & 15) | (high << 4);
      odd[i] = (low >> 4) | (high & 0xF0);
    }
    transpose_pairs(even, destination, column_at, 0);
    transpose_pairs(odd, destination, column_at, 1);
  }

 private:
  static constexpr int kHalf = 8;
  using Longs32 [[gnu::vector_size(32)]] = uint64_t;

  [[gnu::always_inline]] static void load(const uint8_t* low_lane, const uint8_t* high_lane, Bytes32& row) {
    row = __builtin_shufflevector(load_bytes16(low_lane), load_bytes16(high_lane), 0, 1, 2, 3, 4, 5, 6, 7, 8,
                                  9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
                                  28, 29, 30, 31);
  }

  // Every second column, from `first` on.
  template <class Columns>
  [[gnu::always_inline]] static void transpose_pairs(Bytes32 (&rows)[kHalf], uint8_t* destination,
                                                     Columns column_at, int64_t first) {
    for (int done = 1; done < kHalf; done *= 2) {
      Bytes32 next[kHalf];
      for (int i = 0; i < kHalf / 2; ++i) {
        const Bytes32 a = rows[i];
        const Bytes32 b = rows[i + kHalf / 2];
        next[2 * i] = __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39,
                                              16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55);
        next[2 * i + 1] =
            __builtin_shufflevector(a, b, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 24,
                                    56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
      }
      for (int i = 0; i < kHalf; ++i) rows[i] = next[i];
    }
    // A lane has two columns of half of the pairs.
    for (int k = 0; k < kHalf; ++k) {
      const auto columns = __builtin_shufflevector((Longs32)rows[k], (Longs32)rows[k], 0, 2, 1, 3);
      std::memcpy(destination + column_at(first + 4 * k), &columns, 16);
      std::memcpy(destination + column_at(first + 4 * k + 2), reinterpret_cast<const uint8_t*>(&columns) + 16,
                  16);
    }
  }
};

// No elements: zeros in their place.
inline constexpr int64_t kNoNibbles = INT64_MIN;

// Elements from `low` and from `high` on, as the halves of `count` bytes, which may be written up to the next
// multiple of 32.
inline void pair_nibbles(const uint8_t* source, int64_t low, int64_t high, int64_t count, uint8_t* bytes) {
  constexpr int64_t kAtOnce = 32;
  const auto load = [&](int64_t from, int64_t at) {
    if (from == kNoNibbles) return Bytes16{};
    return at + kAtOnce <= count ? load_nibbles32(source, from + at)
                                 : load_few_nibbles(source, from + at, count - at);
  };
  for (int64_t at = 0; at < count; at += kAtOnce) store_pairs(load(low, at), load(high, at), bytes + at);
}

// Low halves of bytes.
inline void pack_nibbles(const uint8_t* bytes, uint8_t* destination, int64_t d, int64_t count) {
  if (count > 0 && d % 2 != 0) {
    set_nibble(destination, d++, *bytes++);
    --count;
  }
  uint8_t* to = destination + d / 2;
  const int64_t pairs = count / 2;
  for (int64_t i = 0; i < pairs; ++i) to[i] = static_cast<uint8_t>(bytes[2 * i] | bytes[2 * i + 1] << 4);
  if (count % 2 != 0) set_nibble(to, count - 1, bytes[count - 1]);
}

inline void copy_nibbles(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count) {
  if (count > 0 && d % 2 != 0) {
    set_nibble(destination, d++, nibble_at(source, s++));
    --count;
  }
  uint8_t* to = destination + d / 2;
  const uint8_t* from = source + s / 2;
  const int64_t pairs = count / 2;
  if (s % 2 == 0) {
    std::memcpy(to, from, static_cast<size_t>(pairs));
  } else {
    int64_t i = 0;
    for (; i + int64_t{sizeof(Bytes16)} <= pairs; i += sizeof(Bytes16))
      store_bytes16(to + i, (load_bytes16(from + i) >> 4) | (load_bytes16(from + i + 1) << 4));
    for (; i < pairs; ++i) to[i] = static_cast<uint8_t>(from[i] >> 4 | from[i + 1] << 4);
  }
  if (count % 2 != 0) set_nibble(to, count - 1, nibble_at(source, s + count - 1));
}

inline void zero_nibbles(uint8_t* destination, int64_t d, int64_t count) {
  if (count > 0 && d % 2 != 0) {
    set_nibble(destination, d++, 0);
    --count;
  }
  std::memset(destination + d / 2, 0, static_cast<size_t>(count / 2));
  if (count % 2 != 0) set_nibble(destination, d + count - 1, 0);
}

}  // namespace
}  // namespace tilework
