// Descriptions of reorders whose extents reach from 0 to the limits: what no random test can run as a whole.
#pragma once

#include "fuzz_input.h"

namespace tilework::fuzz {

// Valid unless it is damaged or a product exceeds the limits.
inline ReorderDescription wide_description(FuzzInput& input) {
  static constexpr int kBits[] = {4, 8, 16, 32, 64, 128};
  test::BasicRandomLayout<FuzzInput> layouts(input);
  ReorderDescription description;
  description.element_bits = kBits[input.below(6)];
  description.shape = layouts.shape();
  if (input.one_in(2)) {
    // So that the products of layouts.side() stay below 2^63.
    const auto rank = static_cast<int64_t>(description.shape.size());
    for (int64_t& extent : description.shape) {
      const int64_t most = int64_t{1} << (50 / rank);
      if (input.one_in(2)) extent = static_cast<int64_t>(input.bits() % static_cast<uint64_t>(most));
    }
  }
  if (input.one_in(2)) {
    description.slice = layouts.slice(description.shape);
    description.from = layouts.side(description.slice->shape);
  } else {
    description.from = layouts.side(description.shape);
  }
  description.to = layouts.side(description.shape);
  return description;
}

}  // namespace tilework::fuzz
