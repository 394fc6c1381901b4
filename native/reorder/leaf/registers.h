// Registers of 32 bytes, as two lanes of 16: how they are read and written, and how the units in them are
// transposed, interleaved and taken apart. With AVX2 a register is one of the processor's; of NEON's, which
// are half as long, it is a pair. Internal to each file, as transpose_places.h.
//
// All steps work inside of lanes. For powers of two, interleaving is a rotation of the bits of an element's
// place, and so is each step of a transpose (see step): the same steps do all of it. Three rows are put
// together from byte shuffles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#include "reorder/leaf/register_avx2.h"
#else
#include "reorder/leaf/register_neon.h"
#endif

namespace tilework {
namespace {

// One step of a transpose: row r meets row r + half. Doing that log2(n) times, always with units of the same
// size, turns n rows of n units into n columns, in each lane for itself.
template <int kSize, int kCount>
TILEWORK_INLINE void step(Register (&rows)[kCount]) {
  Register next[kCount];
  for (int r = 0; r < kCount / 2; ++r) {
    next[2 * r] = unpack_low<kSize>(rows[r], rows[r + kCount / 2]);
    next[2 * r + 1] = unpack_high<kSize>(rows[r], rows[r + kCount / 2]);
  }
  for (int r = 0; r < kCount; ++r) rows[r] = next[r];
}

template <int kSize, int kCount>
TILEWORK_INLINE void transpose_lanes(Register (&rows)[kCount]) {
  static_assert(kSize * kCount == 16);
  for (int done = 1; done < kCount; done *= 2) step<kSize>(rows);
}

// For each pair of a register that is made and a register that it is made from: where its 16 bytes come from;
// 0x80 gives zero, so that the three are put together by OR.
using Shuffles = std::array<std::array<std::array<uint8_t, 16>, 3>, 3>;

// Place of a byte of three interleaved rows: which row, and where in it.
constexpr Shuffles three_way_shuffles(int size, bool interleaves) {
  Shuffles shuffles{};
  for (auto& made : shuffles)
    for (auto& from : made) from.fill(0x80);
  for (int place = 0; place < 48; ++place) {
    const int unit = place / size;
    const int row = unit % 3;
    const int inside = unit / 3 * size + place % size;
    const auto whole = static_cast<size_t>(place / 16);
    if (interleaves) {
      shuffles[whole][static_cast<size_t>(row)][static_cast<size_t>(place % 16)] =
          static_cast<uint8_t>(inside);
    } else {
      shuffles[static_cast<size_t>(row)][whole][static_cast<size_t>(inside)] =
          static_cast<uint8_t>(place % 16);
    }
  }
  return shuffles;
}

template <int kSize, bool kInterleaves>
struct ThreeWay {
  static constexpr Shuffles kShuffles = three_way_shuffles(kSize, kInterleaves);
  TILEWORK_INLINE static void run(Register (&registers)[3]) {
    Register made[3];
    for (size_t m = 0; m < 3; ++m) {
      made[m] = zeros();
      for (size_t f = 0; f < 3; ++f)
        made[m] = either(made[m], shuffle_lanes(registers[f], kShuffles[m][f].data()));
    }
    for (int m = 0; m < 3; ++m) registers[m] = made[m];
  }
};

template <int kSize, int kCount>
TILEWORK_INLINE void interleave(Register (&rows)[kCount]) {
  if constexpr (kCount == 3) {
    ThreeWay<kSize, true>::run(rows);
  } else {
    for (int done = 1; done < kCount; done *= 2) step<kSize>(rows);
  }
}

template <int kSize, int kCount>
TILEWORK_INLINE void take_apart(Register (&pixels)[kCount]) {
  if constexpr (kCount == 3) {
    ThreeWay<kSize, false>::run(pixels);
  } else {
    for (int done = kSize; done < 16; done *= 2) step<kSize>(pixels);
  }
}

}  // namespace
}  // namespace tilework
