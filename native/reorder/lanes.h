// Copies, zeros and streaming stores of 16 and 32 bytes, in as many registers as the instruction set has for
// them that a file is compiled for: the compilers' vector extensions name no instruction set. Internal to
// each file, as transpose_places.h.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <cstdint>

namespace tilework {
namespace {

// Half a vector, and a vector.
constexpr int64_t kHalfBytes = 16;
constexpr int64_t kVectorBytes = 32;

using HalfVector [[gnu::vector_size(kHalfBytes), gnu::aligned(1), gnu::may_alias]] = uint64_t;
using Vector [[gnu::vector_size(kVectorBytes), gnu::aligned(1), gnu::may_alias]] = uint64_t;

[[gnu::always_inline]] inline void copy16(uint8_t* destination, const uint8_t* source) {
  *reinterpret_cast<HalfVector*>(destination) = *reinterpret_cast<const HalfVector*>(source);
}

[[gnu::always_inline]] inline void copy32(uint8_t* destination, const uint8_t* source) {
  *reinterpret_cast<Vector*>(destination) = *reinterpret_cast<const Vector*>(source);
}

[[gnu::always_inline]] inline void zero16(uint8_t* destination) {
  *reinterpret_cast<HalfVector*>(destination) = HalfVector{};
}

[[gnu::always_inline]] inline void zero32(uint8_t* destination) {
  *reinterpret_cast<Vector*>(destination) = Vector{};
}

// Past the caches, to a multiple of 32 bytes, where the instruction set has such stores.
[[gnu::always_inline]] inline void stream32(uint8_t* destination, const uint8_t* source) {
#if defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(destination),
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)));
#elif defined(__aarch64__)
  // A hint, which no intrinsic names.
  const uint8x16_t low = vld1q_u8(source);
  const uint8x16_t high = vld1q_u8(source + 16);
  asm volatile("stnp %q0, %q1, [%2]" : : "w"(low), "w"(high), "r"(destination) : "memory");
#else
  copy32(destination, source);
#endif
}

}  // namespace
}  // namespace tilework
