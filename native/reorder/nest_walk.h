// The plain walk over the loops of a nest, for any range of the destination: bounds, holes and lookups, one
// run or row of the innermost loop at a time. The reference of all kernels, and what lists parameters by
// position. Internal to each file that includes it, as kernels are compiled for different instruction sets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "layout/join.h"
#include "reorder/byte_elements.h"
#include "reorder/nest_range.h"
#include "reorder/plan.h"

namespace tilework {
namespace {

// Elements that want a row with its stride, also one that stays at a place of the source.
template <class Element>
inline constexpr bool kTakesRows = requires { &Element::take_row; };

// Walks one nest for destination elements [begin, end). Offsets are in elements; `d` counts from element 0 of
// the destination storage, whose `begin` stands at `destination`. With
//
//   struct Element {
//     // False where the destination is zero before the walk.
//     static constexpr bool kWritesZeros;
//     // `s` and `d` are elements from `source` and `destination` on.
//     static void copy_run(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count);
//     static void copy_one(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d);
//     static void zero_run(uint8_t* destination, int64_t d, int64_t count);
//     // May be there: all passes of an innermost loop.
//     static void take_row(int64_t s, int64_t source_stride, uint8_t* destination, int64_t d, int64_t count);
//   };
template <class Element>
class NestWalk {
 public:
  NestWalk(const LoopNest& nest, const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end)
      : range_(nest, begin, end), source_(source), destination_(destination) {}

  void run() {
    const LoopNest& nest = range_.nest();
    descend(0, nest.source_base, nest.destination_base, nest.all_zero);
  }

 private:
  using Passes = NestRange::Passes;

  // All passes of a loop, the first of which is at `s` and `d`: zeros where the walk is in a hole.
  void descend(size_t level, int64_t s, int64_t d, bool in_hole) {
    const Node& node = range_.node(level);
    const Passes passes = range_.passes_of(node, d, in_hole);
    if (passes.lo >= passes.hi) return;
    zero(level, d, passes.lo, passes.valid_lo);
    if (node.looks_up) {
      look_up(level, s, d, passes.valid_lo, passes.valid_hi);
    } else if (range_.is_innermost(level)) {
      copy(node, s, d, passes.valid_lo, passes.valid_hi);
    } else {
      for (int64_t i = passes.valid_lo; i < passes.valid_hi; ++i)
        pass(level, i, s + i * node.source_stride, d, false);
    }
    zero(level, d, passes.valid_hi, passes.hi);
  }

  // One pass of a loop that is not the innermost.
  void pass(size_t level, int64_t i, int64_t s, int64_t d, bool in_hole) {
    range_.in_pass(
        level, i, [&](const Node& node) { descend(level + 1, s, d + i * node.destination_stride, in_hole); });
  }

  // A loop in which the source offset becomes known only with each pass.
  void look_up(size_t level, int64_t s, int64_t d, int64_t lo, int64_t hi) {
    const Node& node = range_.node(level);
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t offset = range_.look_up(node, i);
      if (offset == kSkip) continue;
      if (offset == kHole) {
        zero(level, d, i, i + 1);
      } else if (range_.is_innermost(level)) {
        copy_one(s + i * node.source_stride + offset, d + i * node.destination_stride);
      } else {
        pass(level, i, s + i * node.source_stride + offset, d, false);
      }
    }
  }

  // Zeros in passes [lo, hi). The innermost loop is always a run: some digit of the destination has stride 1.
  void zero(size_t level, int64_t d, int64_t lo, int64_t hi) {
    if (!Element::kWritesZeros || lo >= hi) return;
    const Node& node = range_.node(level);
    if (node.dense && node.span == node.destination_stride) {
      const int64_t first = std::max(d + lo * node.span, range_.begin());
      const int64_t last = std::min(d + hi * node.span, range_.end());
      if (first < last) Element::zero_run(destination_, first - range_.begin(), last - first);
    } else {
      for (int64_t i = lo; i < hi; ++i) pass(level, i, 0, d, true);
    }
  }

  // The innermost loop: a run, or a row with strides.
  void copy(const Node& node, int64_t s, int64_t d, int64_t lo, int64_t hi) {
    if (lo >= hi) return;
    if constexpr (kTakesRows<Element>) {
      if (node.destination_stride == 1) {
        Element::take_row(s + lo * node.source_stride, node.source_stride, destination_,
                          d + lo - range_.begin(), hi - lo);
        return;
      }
    }
    if (node.source_stride == 1 && node.destination_stride == 1) {
      Element::copy_run(source_, s + lo, destination_, d + lo - range_.begin(), hi - lo);
      return;
    }
    for (int64_t i = lo; i < hi; ++i) copy_one(s + i * node.source_stride, d + i * node.destination_stride);
  }

  void copy_one(int64_t s, int64_t d) { Element::copy_one(source_, s, destination_, d - range_.begin()); }

  NestRange range_;
  const uint8_t* source_;
  uint8_t* destination_;
};

// Walks all nests of a plan, for destination elements [begin, end).
template <class Element>
void walk_nests(const ReorderArguments& a, int64_t begin, int64_t end) {
  for (const LoopNest& nest : a.plan.nests()) {
    NestWalk<Element>(nest, a.source, a.destination, begin, end).run();
  }
}

template <class T>
void walk_bytes(const ReorderArguments& a) {
  constexpr int64_t kSize = sizeof(T);
  walk_nests<Bytes<T>>(a, a.begin / kSize, a.end / kSize);
}

}  // namespace
}  // namespace tilework
