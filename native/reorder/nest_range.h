// The loops of a nest over a range of the destination: which passes of each loop have something to do, and
// the indices that bound them and that lookups ask for. Internal to each file, as nest_walk.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "io/checked_math.h"
#include "layout/join.h"

namespace tilework {
namespace {

// For destination elements [begin, end). Places `d` are elements of the destination storage, from element 0
// on.
class NestRange {
 public:
  // Passes [lo, hi) of a loop are inside the range and written; of these, [valid_lo, valid_hi) may have a
  // source.
  struct Passes {
    int64_t lo;
    int64_t hi;
    int64_t valid_lo;
    int64_t valid_hi;

    int64_t valid() const { return valid_hi - valid_lo; }
  };

  NestRange(const LoopNest& nest, int64_t begin, int64_t end) : nest_(nest), begin_(begin), end_(end) {
    std::fill_n(index_, nest.variables.size(), 0);
    std::fill_n(lookup_index_, nest.lookups.size(), 0);
  }

  const LoopNest& nest() const { return nest_; }
  const Node& node(size_t level) const { return nest_.nodes[level]; }
  const Node& innermost() const { return nest_.nodes.back(); }
  bool is_innermost(size_t level) const { return level + 1 == nest_.nodes.size(); }
  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }

  // Of the loop `node`, whose first pass is at `d`. None has a source where the walk is in a hole.
  Passes passes_of(const Node& node, int64_t d, bool in_hole) const {
    Passes passes{0, node.count, 0, node.count};
    if (node.variable != kNone) {
      const Variable& variable = nest_.variables[node.variable];
      const int64_t index = index_[node.variable];
      narrow(passes.lo, passes.hi, variable.write_lo, variable.write_hi, index, node);
      narrow(passes.valid_lo, passes.valid_hi, variable.valid_lo, variable.valid_hi, index, node);
    }
    const int64_t stride = node.destination_stride;
    if (d < begin_) passes.lo = std::max(passes.lo, floor_div(begin_ - d - node.span, stride) + 1);
    if (d + (passes.hi - 1) * stride >= end_) passes.hi = std::min(passes.hi, ceil_div(end_ - d, stride));
    if (in_hole) passes.valid_lo = passes.valid_hi = passes.lo;
    passes.valid_lo = std::clamp(passes.valid_lo, passes.lo, std::max(passes.lo, passes.hi));
    passes.valid_hi = std::clamp(passes.valid_hi, passes.valid_lo, std::max(passes.valid_lo, passes.hi));
    return passes;
  }

  // Calls body(node) with the indices as they are in pass `i` of a loop.
  template <class Body>
  void in_pass(size_t level, int64_t i, Body body) {
    const Node& node = nest_.nodes[level];
    if (node.variable != kNone) index_[node.variable] += i * node.weight;
    if (node.lookup != kNone) lookup_index_[node.lookup] += i * node.lookup_stride;
    body(node);
    if (node.variable != kNone) index_[node.variable] -= i * node.weight;
    if (node.lookup != kNone) lookup_index_[node.lookup] -= i * node.lookup_stride;
  }

  // What the lookup of a loop answers in pass `i`: an offset in the source, kHole or kSkip.
  int64_t look_up(const Node& node, int64_t i) const {
    return nest_.lookups[node.lookup].at(lookup_index_[node.lookup] + i * node.lookup_stride);
  }

 private:
  // Cuts [lo, hi) to the passes whose index may reach into [bound_lo, bound_hi); exact in the variable's last
  // loop.
  static void narrow(int64_t& lo, int64_t& hi, int64_t bound_lo, int64_t bound_hi, int64_t index,
                     const Node& node) {
    if (index + node.below < bound_lo)
      lo = std::max(lo, ceil_div(bound_lo - index - node.below, node.weight));
    if (index + (hi - 1) * node.weight >= bound_hi)
      hi = std::min(hi, ceil_div(bound_hi - index, node.weight));
  }

  const LoopNest& nest_;
  int64_t begin_;
  int64_t end_;
  // Only as many as the nest has; an axis has at most one of each.
  int64_t index_[kMaxPlannedAxes];
  int64_t lookup_index_[kMaxPlannedAxes];
};

}  // namespace
}  // namespace tilework
