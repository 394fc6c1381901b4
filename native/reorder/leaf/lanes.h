// Copies, zeros and streaming stores of 16 and 32 bytes, in as many registers as the instruction set has for
// them that a file is compiled for: the compilers' vector extensions name no instruction set. Internal to
// each file, as transpose_places.h.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include "cpu/registers_avx2.h"
#elif defined(__aarch64__)
#include "reorder/leaf/register_neon.h"
#endif

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
  _mm256_stream_si256(reinterpret_cast<__m256i*>(destination), load32(source));
#elif defined(__aarch64__)
  stream32(destination, load32(source));
#else
  copy32(destination, source);
#endif
}

}  // namespace
}  // namespace tilework
