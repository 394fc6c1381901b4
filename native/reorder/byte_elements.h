// Elements of whole bytes, as walks and kernels move them one by one and in runs. Internal to each file, as
// nest_walk.h.
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
inline void zero_bytes(uint8_t* at, int64_t bytes) {
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

// Elements of whole bytes. Storage may start at any byte, so elements are moved by memcpy, which costs
// nothing.
template <class T>
struct Bytes {
  static constexpr bool kWritesZeros = true;
  static constexpr int64_t kSize = sizeof(T);
  static void copy_run(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count) {
    std::memcpy(destination + d * kSize, source + s * kSize, static_cast<size_t>(count * kSize));
  }
  static void copy_one(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d) {
    T value;
    std::memcpy(&value, source + s * kSize, sizeof(T));
    std::memcpy(destination + d * kSize, &value, sizeof(T));
  }
  static void zero_run(uint8_t* destination, int64_t d, int64_t count) {
    zero_bytes(destination + d * kSize, count * kSize);
  }
};

}  // namespace
}  // namespace tilework
