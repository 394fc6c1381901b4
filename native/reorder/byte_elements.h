// The widest element, and zeros. Internal to each file, as kernels are compiled for different instruction
// sets.
#pragma once

#include <cstdint>
#include <cstring>

namespace tilework {
namespace {

// An element of 16 bytes.
struct Unit128 {
  uint64_t low;
  uint64_t high;
};

// As wide as the registers of the instruction set that a file is compiled for, or several of them.
using ZeroStore [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = uint64_t;

// A call of the C library's memset costs more than so few bytes. What is no multiple of a store ends with one
// that overlaps the one before.
[[gnu::always_inline]] inline void zero_bytes(uint8_t* at, int64_t bytes) {
  constexpr int64_t kFew = 256;
  constexpr int64_t kStep = sizeof(ZeroStore);
  constexpr int64_t kHalf = kStep / 2;
  if (bytes >= kStep && bytes <= kFew) {
    for (int64_t i = 0; i < bytes - kStep; i += kStep) *reinterpret_cast<ZeroStore*>(at + i) = ZeroStore{};
    *reinterpret_cast<ZeroStore*>(at + bytes - kStep) = ZeroStore{};
  } else if (bytes >= kHalf && bytes < kStep) {
    std::memset(at, 0, kHalf);
    std::memset(at + bytes - kHalf, 0, kHalf);
  } else {
    std::memset(at, 0, static_cast<size_t>(bytes));
  }
}

}  // namespace
}  // namespace tilework
