// The plain walk over the loops of a nest, for any range of the destination: bounds, holes and lookups, one
// row of the innermost loop at a time. The reference of all kernels, and what lists parameters by position.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "io/checked_math.h"
#include "layout/join.h"

namespace tilework {

// `count` elements: of the source from `source` on, of the destination from `destination` on, counted from
// the beginning of the range.
struct NestRow {
  int64_t source;
  int64_t source_stride;
  int64_t destination;
  int64_t destination_stride;
  int64_t count;
  // Without a source: zeros.
  bool is_hole;
};

// Calls row(NestRow) for each row of destination elements [begin, end); for holes only if they are asked for.
template <class Row>
class NestWalk {
 public:
  NestWalk(const LoopNest& nest, int64_t begin, int64_t end, bool with_holes, Row row)
      : nest_(nest), begin_(begin), end_(end), with_holes_(with_holes), row_(row) {
    descend(0, nest.source_base, nest.destination_base, nest.all_zero);
  }

 private:
  struct Iterations {
    int64_t first;
    int64_t last;
  };

  // Iterations of a loop, the first of which is at `d`, that are written and reach into the range.
  Iterations written(const Node& node, int64_t d) const {
    const int64_t stride = node.destination_stride;
    return cut({std::max<int64_t>(0, floor_div(begin_ - d - node.span, stride) + 1),
                std::min(node.count, ceil_div(end_ - d, stride))},
               node, &Variable::write_lo, &Variable::write_hi);
  }

  // Those whose index may reach into the bounds of the loop's variable; exact in its last loop.
  Iterations cut(Iterations all, const Node& node, int64_t Variable::*lo, int64_t Variable::*hi) const {
    if (node.variable == kNone) return all;
    const Variable& variable = nest_.variables[node.variable];
    const int64_t index = index_[node.variable];
    const int64_t first = std::max(all.first, ceil_div(variable.*lo - index - node.below, node.weight));
    return {first, std::clamp(ceil_div(variable.*hi - index, node.weight), first, std::max(first, all.last))};
  }

  void descend(size_t level, int64_t s, int64_t d, bool in_hole) {
    const Node& node = nest_.nodes[level];
    const Iterations all = written(node, d);
    Iterations valid =
        in_hole ? Iterations{all.first, all.first} : cut(all, node, &Variable::valid_lo, &Variable::valid_hi);
    if (valid.first >= valid.last) valid = {all.last, all.last};
    run(level, {all.first, valid.first}, s, d, true);
    run(level, valid, s, d, false);
    run(level, {valid.last, all.last}, s, d, true);
  }

  void run(size_t level, Iterations part, int64_t s, int64_t d, bool in_hole) {
    if (part.first >= part.last || (in_hole && !with_holes_)) return;
    const Node& node = nest_.nodes[level];
    const bool looks_up = node.looks_up && !in_hole;
    if (level + 1 == nest_.nodes.size() && !looks_up) return row(node, part, s, d, in_hole);
    for (int64_t i = part.first; i < part.last; ++i) {
      const int64_t offset = looks_up ? look_up(node, i) : 0;
      if (offset == kSkip || (offset == kHole && !with_holes_)) continue;
      const bool is_hole = in_hole || offset == kHole;
      if (level + 1 == nest_.nodes.size()) {
        row(node, {i, i + 1}, s + (is_hole ? 0 : offset), d, is_hole);
        continue;
      }
      if (node.variable != kNone) index_[node.variable] += i * node.weight;
      if (node.lookup != kNone) lookup_index_[node.lookup] += i * node.lookup_stride;
      descend(level + 1, s + i * node.source_stride + (is_hole ? 0 : offset), d + i * node.destination_stride,
              is_hole);
      if (node.variable != kNone) index_[node.variable] -= i * node.weight;
      if (node.lookup != kNone) lookup_index_[node.lookup] -= i * node.lookup_stride;
    }
  }

  void row(const Node& node, Iterations part, int64_t s, int64_t d, bool is_hole) {
    row_(NestRow{s + part.first * node.source_stride, node.source_stride,
                 d + part.first * node.destination_stride - begin_, node.destination_stride,
                 part.last - part.first, is_hole});
  }

  int64_t look_up(const Node& node, int64_t i) const {
    return nest_.lookups[node.lookup].at(lookup_index_[node.lookup] + i * node.lookup_stride);
  }

  const LoopNest& nest_;
  int64_t begin_;
  int64_t end_;
  bool with_holes_;
  Row row_;
  // An axis has at most one of each.
  std::array<int64_t, kMaxPlannedAxes> index_{};
  std::array<int64_t, kMaxPlannedAxes> lookup_index_{};
};

}  // namespace tilework
