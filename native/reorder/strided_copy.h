// Copies elements whose sources have a fixed step, also backwards: a plain loop, of which the compiler makes
// shuffles where the step is known and the instruction set has them. Internal to each file, as nest_walk.h.
#pragma once

#include <cstdint>

#include "reorder/byte_elements.h"

namespace tilework {
namespace {

// Storage may start at any byte.
template <class T>
struct LooseUnit {
  using Type [[gnu::aligned(1), gnu::may_alias]] = T;
};
template <>
struct LooseUnit<Unit128> {
  struct Type {
    uint8_t bytes[16];
  };
};
template <class T>
using Loose = typename LooseUnit<T>::Type;

template <class T>
[[gnu::always_inline]] inline void copy_steps(const uint8_t* source, int64_t step, uint8_t* destination,
                                              int64_t count) {
  const auto* __restrict from = reinterpret_cast<const Loose<T>*>(source);
  auto* __restrict to = reinterpret_cast<Loose<T>*>(destination);
  for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
}

// Steps that shuffles are made for.
template <class T>
void copy_strided(const uint8_t* source, int64_t step, uint8_t* destination, int64_t count) {
  switch (step) {
    case -1:
      return copy_steps<T>(source, -1, destination, count);
    case 2:
      return copy_steps<T>(source, 2, destination, count);
    default:
      return copy_steps<T>(source, step, destination, count);
  }
}

}  // namespace
}  // namespace tilework
