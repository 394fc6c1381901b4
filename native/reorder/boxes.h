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

// Makes the nest count only the passes of a box, from 0 on. Strides and bases stay as they are, and lookups
// are not moved; the nest has to be finished again.
void count_passes_of(const Box& box, LoopNest& nest);

// The finished nest of a box, which writes where the whole nest writes; nothing where it writes no slot. The
// nest has no lookups.
std::optional<LoopNest> nest_of_box(const LoopNest& nest, const Box& box);

}  // namespace tilework
