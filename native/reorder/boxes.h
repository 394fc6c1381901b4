// Parts of a loop nest: some passes of each of its loops. What a range of the destination is, and what the
// bounds of tails leave of it, is a few such boxes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layout/join.h"

namespace tilework {

// Passes [begin, end) of a loop, or values of a variable.
struct Passes {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t count() const { return end - begin; }
};

// Passes of each loop of a nest, outermost first.
using Box = std::vector<Passes>;

// The parts of a box in which its loops add a value of [values.begin, values.end) to a variable. There are at
// most a few for each loop of the variable.
std::vector<Box> parts_within(const LoopNest& nest, const Box& box, int variable, Passes values);

// The boxes that together write destination elements [begin, end) of a nest, in the order of the destination;
// nothing where there are more than `most`.
std::optional<std::vector<Box>> boxes_of(const LoopNest& nest, int64_t begin, int64_t end, size_t most);

}  // namespace tilework
