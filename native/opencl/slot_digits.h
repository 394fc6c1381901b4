// A nest read backwards: from a slot of the destination to the passes of all loops. Slots are written in
// mixed radix by the destination's own digits; the loops over one digit take its value apart again. Only a
// digit that a nest begins to walk before its first slot (join.cc, chain_at_block) needs care: its values do
// not begin at zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/join.h"

namespace tilework::cl {

// Loop number `node` of a nest takes value / weight of what the loops before it have left.
struct DigitLoop {
  size_t node;
  int64_t weight;
};

struct SlotDigit {
  int64_t stride;
  // Values first .. first + count - 1; the slot with the first value has none of this digit in it.
  int64_t first;
  int64_t count;
  std::vector<DigitLoop> loops;
};

struct SlotDigits {
  // Of all first values.
  int64_t base;
  // Widest strides first. A slot that this nest does not write leaves a rest, or has a value of `count` or
  // more, or a variable outside its bounds.
  std::vector<SlotDigit> digits;
};

SlotDigits slot_digits(const LoopNest& nest);

}  // namespace tilework::cl
