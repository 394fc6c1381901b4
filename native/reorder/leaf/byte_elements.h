// The widest element, and zeros. Internal to each file, as kernels are compiled for different instruction
// sets.
#pragma once

#include <cstdint>
#include <cstring>

#include "reorder/leaf/lanes.h"

namespace tilework {
namespace {

// An element of 16 bytes.
struct Unit128 {
  uint64_t low;
  uint64_t high;
};

// A call of the C library's memset costs more than so few bytes. What is no multiple of a store ends with one
// that overlaps the one before.
[[gnu::always_inline]] inline void zero_bytes(uint8_t* at, int64_t bytes) {
  constexpr int64_t kFew = 256;
  if (bytes >= kVectorBytes && bytes <= kFew) {
    for (int64_t i = 0; i < bytes - kVectorBytes; i += kVectorBytes) zero32(at + i);
    zero32(at + bytes - kVectorBytes);
  } else if (bytes >= kHalfBytes && bytes < kVectorBytes) {
    zero16(at);
    zero16(at + bytes - kHalfBytes);
  } else {
    std::memset(at, 0, static_cast<size_t>(bytes));
  }
}

}  // namespace
}  // namespace tilework
