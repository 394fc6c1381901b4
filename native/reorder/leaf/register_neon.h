// Pairs of NEON's registers, for registers.h: the compilers' vector extensions find most instructions.
// Internal to each file, as transpose_places.h.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

// What is written as arrays of registers are registers only where all of it is inlined.
#define TILEWORK_INLINE [[gnu::always_inline]] inline

namespace tilework {
namespace {

using Lane [[gnu::vector_size(16), gnu::may_alias]] = int64_t;
using LooseLane [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = int64_t;

struct Register {
  Lane low;
  Lane high;
};

TILEWORK_INLINE Lane load16(const uint8_t* at) { return *reinterpret_cast<const LooseLane*>(at); }
TILEWORK_INLINE void store16(uint8_t* at, Lane value) { *reinterpret_cast<LooseLane*>(at) = value; }
TILEWORK_INLINE Register load32(const uint8_t* at) { return {load16(at), load16(at + 16)}; }
TILEWORK_INLINE void store32(uint8_t* at, Register value) {
  store16(at, value.low);
  store16(at + 16, value.high);
}

// 16 bytes in each lane.
TILEWORK_INLINE Register load_lanes(const uint8_t* low, const uint8_t* high) {
  return {load16(low), load16(high)};
}

TILEWORK_INLINE Register zeros() { return {Lane{}, Lane{}}; }

TILEWORK_INLINE Register combine(Lane low, Lane high) { return {low, high}; }
TILEWORK_INLINE Lane low_lane(Register all) { return all.low; }
TILEWORK_INLINE Lane high_lane(Register all) { return all.high; }

// The low, or the high, lanes of two registers.
TILEWORK_INLINE Register low_lanes(Register a, Register b) { return {a.low, b.low}; }
TILEWORK_INLINE Register high_lanes(Register a, Register b) { return {a.high, b.high}; }

template <size_t kSize>
using LaneUnit = std::conditional_t<
    kSize == 1, uint8_t,
    std::conditional_t<kSize == 2, uint16_t, std::conditional_t<kSize == 4, uint32_t, uint64_t>>>;

// Units of `kSize` bytes of two lanes, those of b behind those of a, at kPlaces.
template <int kSize, int... kPlaces>
TILEWORK_INLINE Lane select(Lane a, Lane b) {
  using Units [[gnu::vector_size(16)]] = LaneUnit<kSize>;
  return reinterpret_cast<Lane>(
      __builtin_shufflevector(reinterpret_cast<Units>(a), reinterpret_cast<Units>(b), kPlaces...));
}

// Interleaves units from unit `kFirst` of each lane on.
template <int kSize, int kFirst, int... kPairs>
TILEWORK_INLINE Lane interleave_from(Lane a, Lane b, std::integer_sequence<int, kPairs...>) {
  constexpr int kUnits = 16 / kSize;
  return select<kSize, (kFirst + kPairs / 2 + kPairs % 2 * kUnits)...>(a, b);
}

// Interleaves units of `kSize` bytes of the low, or of the high, halves of the lanes.
template <int kSize>
TILEWORK_INLINE Register unpack_low(Register a, Register b) {
  constexpr std::make_integer_sequence<int, 16 / kSize> kPairs{};
  return {interleave_from<kSize, 0>(a.low, b.low, kPairs), interleave_from<kSize, 0>(a.high, b.high, kPairs)};
}

template <int kSize>
TILEWORK_INLINE Register unpack_high(Register a, Register b) {
  constexpr std::make_integer_sequence<int, 16 / kSize> kPairs{};
  constexpr int kHalf = 8 / kSize;
  return {interleave_from<kSize, kHalf>(a.low, b.low, kPairs),
          interleave_from<kSize, kHalf>(a.high, b.high, kPairs)};
}

// Halves of the lanes: the first ones in the low lane, the second ones in the high lane.
TILEWORK_INLINE Register part_lanes(Register all) {
  return {select<8, 0, 2>(all.low, all.high), select<8, 1, 3>(all.low, all.high)};
}

// Of each lane, every second unit of 4 bytes: those of a, then those of b.
TILEWORK_INLINE Register even_words(Register a, Register b) {
  return {select<4, 0, 2, 4, 6>(a.low, b.low), select<4, 0, 2, 4, 6>(a.high, b.high)};
}

// Bytes of a lane at `places`, 16 of them; zero where the highest bit of a place is set.
TILEWORK_INLINE Lane shuffle(Lane lane, const uint8_t* places) {
  return reinterpret_cast<Lane>(vqtbl1q_u8(reinterpret_cast<uint8x16_t>(lane), vld1q_u8(places)));
}

TILEWORK_INLINE Register shuffle_lanes(Register all, const uint8_t* places) {
  return {shuffle(all.low, places), shuffle(all.high, places)};
}
TILEWORK_INLINE Register either(Register a, Register b) { return {a.low | b.low, a.high | b.high}; }

// Both halves of a lane, each to a place of its own.
TILEWORK_INLINE void store_halves(uint8_t* first, uint8_t* second, Lane lane) {
  const int64_t halves[2] = {lane[0], lane[1]};
  std::memcpy(first, &halves[0], sizeof(halves[0]));
  std::memcpy(second, &halves[1], sizeof(halves[1]));
}

// No hint is worth it for less than a pair.
TILEWORK_INLINE void put16(uint8_t* at, Lane value, bool) { store16(at, value); }

// A hint, which no intrinsic names.
TILEWORK_INLINE void stream32(uint8_t* at, Register value) {
  asm volatile("stnp %q0, %q1, [%2]" : : "w"(value.low), "w"(value.high), "r"(at) : "memory");
}

}  // namespace
}  // namespace tilework
