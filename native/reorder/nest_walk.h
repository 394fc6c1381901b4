// The walk over the loops of a nest, for any range of the destination: bounds, holes, lookups, and what is
// not moved as rectangles (rectangle_moves.h). Kernels for runs and tiles share it with the reference; they
// differ in what is done with the rectangles of the innermost loops (see nest_class.h). All of it, and of the
// headers that say so, is internal to each file that includes it, as kernels are compiled for different
// instruction sets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu/cache.h"
#include "io/checked_math.h"
#include "layout/join.h"
#include "reorder/byte_elements.h"
#include "reorder/kernels.h"
#include "reorder/nest_class.h"
#include "reorder/nest_range.h"
#include "reorder/plan.h"
#include "reorder/rectangle.h"
#include "reorder/rectangle_moves.h"

namespace tilework {
namespace {

// No rectangles: every loop is walked. What the reference does.
struct NoRectangles {
  static constexpr NestClass kClass = NestClass::kLoopNest;
};

// Elements that want a row with its stride, also one that stays at a place of the source.
template <class Element>
inline constexpr bool kTakesRows = requires { &Element::take_row; };

// Kernels that move groups of pixels.
template <class Kernel>
inline constexpr bool kTakesPixels = requires { &Kernel::move_pixels; };

// Walks one nest for destination elements [begin, end). Offsets are in elements; `d` counts from element 0 of
// the destination storage, whose `begin` stands at `destination`. With
//
//   struct Element {
//     // False where the destination is zero before the walk.
//     static constexpr bool kWritesZeros;
//     // Bytes; not needed where no rectangles are made.
//     static constexpr int64_t kSize;
//     // `s` and `d` are elements from `source` and `destination` on.
//     static void copy_run(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count);
//     static void copy_one(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d);
//     static void zero_run(uint8_t* destination, int64_t d, int64_t count);
//     // May be there: all passes of an innermost loop.
//     static void take_row(int64_t s, int64_t source_stride, uint8_t* destination, int64_t d, int64_t count);
//   };
template <class Element, class Kernel>
class NestWalk {
 public:
  NestWalk(const LoopNest& nest, const InnerLoops& inner, const ReorderArguments& arguments, int64_t begin,
           int64_t end)
      : NestWalk(nest, inner, arguments.source, arguments.destination, arguments.stores, begin, end) {}

  NestWalk(const LoopNest& nest, const InnerLoops& inner, const uint8_t* source, uint8_t* destination,
           Stores stores, int64_t begin, int64_t end)
      : range_(nest, begin, end),
        rectangles_(range_, inner, source, destination, stores),
        pixel_level_(pixel_level_of(nest, inner)),
        source_(source),
        destination_(destination) {}

  void run() {
    const LoopNest& nest = range_.nest();
    descend(0, nest.source_base, nest.destination_base, nest.all_zero);
  }

 private:
  using Rectangles = RectangleMoves<Element, Kernel>;
  using Passes = NestRange::Passes;
  using Columns = RectangleColumns;
  static constexpr bool kHasRectangles = Kernel::kClass != NestClass::kLoopNest;
  static constexpr size_t kNoLevel = Rectangles::kNoLevel;

  size_t pixel_level_of(const LoopNest& nest, const InnerLoops& inner) const {
    if constexpr (kTakesPixels<Kernel>) {
      if (rectangles_.column_level() == kNoLevel || !inner.pixel_level) return kNoLevel;
      const Node& pixel = nest.nodes[*inner.pixel_level];
      if (Kernel::fits_pixels(nest.nodes.back().count, pixel.count, pixel.source_stride)) {
        return *inner.pixel_level;
      }
    }
    return kNoLevel;
  }

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
    } else if (level == rectangles_.column_level()) {
      if constexpr (kHasRectangles) columns(level, s, d, passes.valid_lo, passes.valid_hi);
    } else if (level == pixel_level_ && range_.holds_all(node, d, passes)) {
      if constexpr (kTakesPixels<Kernel>) {
        pixels(level + 1, s, d);
        move_groups();
      }
    } else {
      int64_t first = passes.valid_lo;
      if constexpr (kHasRectangles) first += rectangles_.repeat_around(level, s, d, passes);
      for (int64_t i = first; i < passes.valid_hi; ++i) pass(level, i, s + i * node.source_stride, d, false);
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

  // Passes that the range cuts are walked; the others, which it holds as a whole, become rectangles.
  void columns(size_t level, int64_t s, int64_t d, int64_t lo, int64_t hi) {
    const Node& node = range_.node(level);
    const int64_t stride = node.destination_stride;
    const int64_t begin = range_.begin();
    const int64_t whole_lo = d < begin ? std::clamp(ceil_div(begin - d, stride), lo, hi) : lo;
    const int64_t whole_hi = std::clamp(floor_div(range_.end() - d - node.span, stride) + 1, whole_lo, hi);
    for (int64_t i = lo; i < whole_lo; ++i) pass(level, i, s + i * node.source_stride, d, false);
    const int64_t chunk = columns_a_chunk(level, whole_hi - whole_lo);
    for (int64_t i = whole_lo; i < whole_hi; i += chunk) {
      const Columns part{std::min(chunk, whole_hi - i), node.source_stride, stride};
      descend_columns(level + 1, s + i * node.source_stride, d + i * stride, part);
    }
    for (int64_t i = whole_hi; i < hi; ++i) pass(level, i, s + i * node.source_stride, d, false);
  }

  // Loops between the two of the rectangle come back to cache lines of the destination that they have written
  // a part of: as many columns as a first-level cache keeps, but enough to be worth a rectangle. Where each
  // pass writes whole lines, or many of them, or there is no such loop, all of them.
  int64_t columns_a_chunk(size_t level, int64_t columns) const {
    constexpr int64_t kChunkBytes = 16 << 10;
    constexpr int64_t kFewestColumns = 256;
    constexpr int64_t kManyLines = 4;
    const int64_t run = range_.innermost().count * Element::kSize;
    const bool has_lines = (run | range_.node(level).destination_stride * Element::kSize) % kLineBytes == 0;
    if (range_.is_innermost(level + 1) || has_lines || run >= kManyLines * kLineBytes) return columns;
    const int64_t line = std::max<int64_t>(kLineBytes / Element::kSize, 1);
    const int64_t kept = kChunkBytes / (range_.node(level).span * Element::kSize) / line * line;
    return std::max(kept, kFewestColumns);
  }

  // As descend, for several columns at once, all inside the range.
  void descend_columns(size_t level, int64_t s, int64_t d, const Columns& columns) {
    const Node& node = range_.node(level);
    Passes passes = range_.passes_of(node, d, false);
    if (passes.lo >= passes.hi) return;
    if (!range_.is_innermost(level) && zero_all_columns(node, d, passes, columns)) {
      passes.lo = passes.valid_lo;
      passes.hi = passes.valid_hi;
    }
    zero_columns(level, d, passes.lo, passes.valid_lo, columns);
    if (range_.is_innermost(level) && passes.valid() > 0) {
      Kernel::move(rectangles_.rectangle(s, d, passes, columns));
      return;
    }
    if (!rectangles_.move_chain(level, s, d, passes, columns)) {
      const int64_t first = passes.valid_lo + rectangles_.repeat_inside(level, s, d, passes, columns);
      for (int64_t i = first; i < passes.valid_hi; ++i) {
        range_.in_pass(level, i, [&](const Node& at) {
          descend_columns(level + 1, s + i * at.source_stride, d + i * at.destination_stride, columns);
        });
      }
    }
    zero_columns(level, d, passes.valid_hi, passes.hi, columns);
  }

  // Zeros of columns that lie one behind the other, with what is written over afterwards: a processor fetches
  // lines that are written in order before they are needed, and the others, then, are in the first-level
  // cache.
  bool zero_all_columns(const Node& node, int64_t d, const Passes& passes, const Columns& columns) {
    constexpr int64_t kMostBytes = 32 << 10;
    const int64_t elements = columns.count * columns.destination_stride;
    const bool has_zeros = passes.hi - passes.lo > passes.valid();
    if (!Element::kWritesZeros || !has_zeros || elements * Element::kSize > kMostBytes) return false;
    if (!node.dense || passes.lo != 0 || passes.hi != node.count) return false;
    if (node.span != node.destination_stride || node.count * node.span != columns.destination_stride)
      return false;
    Element::zero_run(destination_, d - range_.begin(), elements);
    return true;
  }

  void zero_columns(size_t level, int64_t d, int64_t lo, int64_t hi, const Columns& columns) {
    if (lo >= hi) return;
    for (int64_t i = 0; i < columns.count; ++i) zero(level, d + i * columns.destination_stride, lo, hi);
  }

  // As descend, for all passes of the loop at pixel_level_ at once.
  void pixels(size_t level, int64_t s, int64_t d) {
    const Node& node = range_.node(level);
    const Passes passes = range_.passes_of(node, d, false);
    if (passes.lo >= passes.hi) return;
    if (level == rectangles_.column_level()) {
      if (passes.valid_lo > 0) return each_pixel(level, s, d);
      if (passes.valid_hi > 0) add_group(s, d, passes.valid_hi);
    } else {
      for (int64_t i = passes.valid_lo; i < passes.valid_hi; ++i) {
        range_.in_pass(level, i, [&](const Node& at) {
          pixels(level + 1, s + i * at.source_stride, d + i * at.destination_stride);
        });
      }
    }
    const Node& pixel = range_.node(pixel_level_);
    const Columns all{pixel.count, pixel.source_stride, pixel.destination_stride};
    zero_columns(level, d, passes.lo, passes.valid_lo, all);
    zero_columns(level, d, passes.valid_hi, passes.hi, all);
  }

  void each_pixel(size_t level, int64_t s, int64_t d) {
    const Node& pixel = range_.node(pixel_level_);
    for (int64_t p = 0; p < pixel.count; ++p) {
      descend(level, s + p * pixel.source_stride, d + p * pixel.destination_stride, false);
    }
  }

  // Groups that go on in the destination where those before end are moved together.
  void add_group(int64_t s, int64_t d, int64_t channels) {
    const int64_t end = group_destination_ + group_count_ * group_channels_ * range_.innermost().count;
    if (d != end || channels != group_channels_ || group_count_ == kMostGroups) move_groups();
    if (group_count_ == 0) {
      group_destination_ = d;
      group_channels_ = channels;
    }
    group_places_[group_count_++] = s;
  }

  void move_groups() {
    if (group_count_ == 0) return;
    const Node& pixel = range_.node(pixel_level_);
    const Node& row = range_.innermost();
    const Columns all{pixel.count, pixel.source_stride, pixel.destination_stride};
    Kernel::move_pixels(rectangles_.rectangle(0, group_destination_, {0, row.count, 0, row.count}, all),
                        {group_places_, group_count_, pixel.source_stride, group_channels_});
    group_count_ = 0;
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
  Rectangles rectangles_;
  size_t pixel_level_;
  const uint8_t* source_;
  uint8_t* destination_;
  // Groups of pixels that were come to and not yet moved.
  static constexpr int64_t kMostGroups = 64;
  int64_t group_places_[kMostGroups];
  int64_t group_count_ = 0;
  int64_t group_channels_ = 0;
  int64_t group_destination_ = 0;
};

// Walks all nests of a plan, for destination elements [begin, end).
template <class Element, class Kernel>
void walk_nests(const ReorderArguments& arguments, int64_t begin, int64_t end) {
  const ReorderPlan& plan = arguments.plan;
  for (size_t i = 0; i < plan.nests().size(); ++i) {
    // A nest of another class: of a part that a layout stores differently.
    if (Kernel::kClass != NestClass::kLoopNest && plan.box(i) != nullptr) {
      gather_nest(arguments, i, begin, end);
      continue;
    }
    const bool is_ordered = Kernel::kClass != NestClass::kLoopNest && plan.ordered(i);
    NestWalk<Element, Kernel>(is_ordered ? plan.ordered(i)->nest : plan.nests()[i],
                              is_ordered ? plan.ordered(i)->inner : plan.inner_loops()[i], arguments, begin,
                              end)
        .run();
  }
}

template <class T, class Kernel>
void walk_bytes(const ReorderArguments& arguments) {
  constexpr int64_t size = sizeof(T);
  walk_nests<Bytes<T>, Kernel>(arguments, arguments.begin / size, arguments.end / size);
}

}  // namespace
}  // namespace tilework
