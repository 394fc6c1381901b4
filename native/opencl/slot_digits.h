// Inverts a nest: from a slot of the destination to the iterations of all loops. A slot is written in mixed
// radix by the destination's own digits, and the loops over one digit split its value. Only a digit that a
// nest enters before its first slot (join.cc, chain_at_block) needs care: its values do not start at zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/join.h"

namespace tilework::cl {

// Loop `node` of a nest has the iteration value / weight, where value is what remains after the loops before
// it.
struct DigitLoop {
  size_t node;
  int64_t weight;
};

struct SlotDigit {
  int64_t stride;
  // Values are first .. first + count - 1; the slot of the first value has none of this digit in it.
  int64_t first;
  int64_t count;
  std::vector<DigitLoop> loops;
};

struct SlotDigits {
  // Sum over all first values.
  int64_t base;
  // Widest strides first. A slot that this nest does not write leaves a remainder, has a value of `count` or
  // more, or a variable out of bounds.
  std::vector<SlotDigit> digits;
};

SlotDigits slot_digits(const LoopNest& nest);

}  // namespace tilework::cl
