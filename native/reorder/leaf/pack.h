// Packs every n-th unit by byte shuffles. Internal to each file, as transpose_places.h.
#pragma once

#include <array>
#include <cstring>

#include "reorder/leaf/registers.h"

namespace tilework {
namespace {

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
TILEWORK_INLINE Register load_every(const uint8_t* lowest) {
  constexpr int kLoads = kStep < 0 ? -kStep : kStep;
  constexpr int kBefore = kHigher ? 0 : (kLoads - 1) * kSize;
  static constexpr EveryShuffles<kLoads> kShuffles = every_shuffles<kSize, kStep>(kBefore);
  const uint8_t* low = lowest - kBefore + (kStep < 0 ? 16 * kLoads : 0);
  const uint8_t* high = lowest - kBefore + (kStep < 0 ? 0 : 16 * kLoads);
  Register made = zeros();
  for (int i = 0; i < kLoads; ++i) {
    const Register from = load_lanes(low + 16 * i, high + 16 * i);
    made = either(made, shuffle_lanes(from, kShuffles[static_cast<size_t>(i)].data()));
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
