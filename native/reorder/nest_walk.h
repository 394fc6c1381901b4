// The walk over the loops of a nest, for any range of the destination. All kernels share it; they differ in
// what is done with the rectangle of the innermost loops (see nest_class.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "io/checked_math.h"
#include "layout/join.h"
#include "reorder/kernels.h"
#include "reorder/nest_class.h"
#include "reorder/plan.h"

namespace tilework {
namespace {

struct Unit128 {
  uint64_t low;
  uint64_t high;
};

// As wide as the registers of the instruction set that a file is compiled for, or several of them.
using ZeroStore [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = uint64_t;

// A call of the C library's memset costs more than so few bytes. What is no multiple of a store ends with one
// that overlaps the one before.
inline void zero_bytes(uint8_t* at, int64_t bytes) {
  constexpr int64_t kFew = 256;
  constexpr int64_t kStep = sizeof(ZeroStore);
  constexpr int64_t kHalf = kStep / 2;
  if (bytes >= kStep && bytes <= kFew) {
    for (int64_t i = 0; i < bytes - kStep; i += kStep) *reinterpret_cast<ZeroStore*>(at + i) = ZeroStore{};
    *reinterpret_cast<ZeroStore*>(at + bytes - kStep) = ZeroStore{};
  } else if (bytes >= kHalf && bytes < kStep) {
    std::memset(at, 0, kHalf);
    std::memset(at + bytes - kHalf, 0, kHalf);
  } else {
    std::memset(at, 0, static_cast<size_t>(bytes));
  }
}

// Elements of whole bytes. Storage may start at any byte, so elements are moved by memcpy, which costs
// nothing.
template <class T>
struct Bytes {
  static constexpr bool kWritesZeros = true;
  static constexpr int64_t kSize = sizeof(T);
  static void copy_run(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count) {
    std::memcpy(destination + d * kSize, source + s * kSize, static_cast<size_t>(count * kSize));
  }
  static void copy_one(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d) {
    T value;
    std::memcpy(&value, source + s * kSize, sizeof(T));
    std::memcpy(destination + d * kSize, &value, sizeof(T));
  }
  static void zero_run(uint8_t* destination, int64_t d, int64_t count) {
    zero_bytes(destination + d * kSize, count * kSize);
  }
};

// `rows` x `columns` elements, all of which have a source. Column c of row r stands `columns`-wise at
// source + r * source_row + c * source_column and goes to destination + r + c * destination_column; strides
// are in elements, addresses in bytes. Behind the last row `zero_rows` more are written as zeros.
struct Rectangle {
  const uint8_t* source;
  uint8_t* destination;
  int64_t columns;
  int64_t rows;
  int64_t zero_rows;
  int64_t source_column;
  int64_t source_row;
  int64_t destination_column;
  Stores stores;
};

// Rectangles that go on: number `i` of `count` begins at source + i * source_stride and goes to destination +
// i * destination_stride, in elements.
struct RectangleChain {
  InnerLoops::Chain kind;
  int64_t count;
  int64_t source_stride;
  int64_t destination_stride;
  // Of interleaved ones each is a row of `beside` rectangles that are `beside_source` elements apart in the
  // source and side by side in the destination, completed with `zero_beside` of zeros.
  int64_t beside = 1;
  int64_t zero_beside = 0;
  int64_t beside_source = 0;
  // The whole chain comes so many times, its beginnings so many elements apart.
  int64_t repeats = 1;
  int64_t repeat_source = 0;
  int64_t repeat_destination = 0;
  // Of runs: elements of one behind them that is not complete.
  int64_t rest = 0;
};

// Groups of pixels, of which the destination has the channels one behind the other: channel c of group g,
// number k = g * valid_channels + c of all. Pixel p of row r of a group stands at source + places[g] +
// r * rectangle.source_row + p * channels; channel k of it goes to
// destination + p * rectangle.destination_column + k * rectangle.rows + r. All in elements.
struct PixelGroups {
  const int64_t* places;
  int64_t count;
  int64_t channels;
  // Others are holes of the source.
  int64_t valid_channels;
};

// No rectangles: every loop is walked. What the reference does.
struct NoRectangles {
  static constexpr NestClass kClass = NestClass::kLoopNest;
  static void move(const Rectangle&) {}
  static bool move_chain(const Rectangle&, const RectangleChain&) { return false; }
  static bool fits_pixels(int64_t, int64_t, int64_t) { return false; }
  static void move_pixels(const Rectangle&, const PixelGroups&) {}
};

// Elements that want a row with its stride, also one that stays at a place of the source.
template <class Element>
inline constexpr bool kTakesRows = requires { &Element::take_row; };

// Walks one nest for destination elements [begin, end). Offsets are in elements; `d` counts from element 0 of
// the destination storage, whose `begin` stands at `destination_`.
template <class Element, class Kernel>
class NestWalk {
 public:
  NestWalk(const LoopNest& nest, const InnerLoops& inner, const ReorderArguments& arguments, int64_t begin,
           int64_t end)
      : NestWalk(nest, inner, arguments.source, arguments.destination, arguments.stores, begin, end) {}

  NestWalk(const LoopNest& nest, const InnerLoops& inner, const uint8_t* source, uint8_t* destination,
           Stores stores, int64_t begin, int64_t end)
      : nest_(nest),
        column_level_(kHasRectangles && inner.nest_class == Kernel::kClass && inner.column_level
                          ? *inner.column_level
                          : kNoLevel),
        pixel_level_(column_level_ != kNoLevel && has_pixels(nest, inner) ? *inner.pixel_level : kNoLevel),
        chain_(inner.chain),
        source_(source),
        destination_(destination),
        stores_(stores),
        begin_(begin),
        end_(end) {
    std::fill_n(index_, nest.variables.size(), 0);
    std::fill_n(lookup_index_, nest.lookups.size(), 0);
  }

  void run() { descend(0, nest_.source_base, nest_.destination_base, nest_.all_zero); }

 private:
  static constexpr size_t kNoLevel = SIZE_MAX;
  static constexpr bool kHasRectangles = Kernel::kClass != NestClass::kLoopNest;

  // Passes [lo, hi) of a loop are inside the range and written; of these, [valid_lo, valid_hi) may have a
  // source.
  struct Passes {
    int64_t lo;
    int64_t hi;
    int64_t valid_lo;
    int64_t valid_hi;
  };

  // Passes of the loop at column_level_ that make one rectangle with every pass of the deeper loops.
  struct Columns {
    int64_t count;
    int64_t source_stride;
    int64_t destination_stride;
  };

  Passes passes_of(const Node& node, int64_t d, bool dead) const {
    Passes passes{0, node.count, 0, node.count};
    if (node.variable != kNone) {
      const Variable& variable = nest_.variables[node.variable];
      const int64_t s = index_[node.variable];
      narrow(passes.lo, passes.hi, variable.write_lo, variable.write_hi, s, node);
      narrow(passes.valid_lo, passes.valid_hi, variable.valid_lo, variable.valid_hi, s, node);
    }
    const int64_t stride = node.destination_stride;
    if (d < begin_) passes.lo = std::max(passes.lo, floor_div(begin_ - d - node.span, stride) + 1);
    if (d + (passes.hi - 1) * stride >= end_) passes.hi = std::min(passes.hi, ceil_div(end_ - d, stride));
    if (dead) passes.valid_lo = passes.valid_hi = passes.lo;
    passes.valid_lo = std::clamp(passes.valid_lo, passes.lo, std::max(passes.lo, passes.hi));
    passes.valid_hi = std::clamp(passes.valid_hi, passes.valid_lo, std::max(passes.valid_lo, passes.hi));
    return passes;
  }

  // Cuts [lo, hi) to the passes whose index may reach into [bound_lo, bound_hi); exact in the variable's last
  // loop.
  static void narrow(int64_t& lo, int64_t& hi, int64_t bound_lo, int64_t bound_hi, int64_t s,
                     const Node& node) {
    if (s + node.below < bound_lo) lo = std::max(lo, ceil_div(bound_lo - s - node.below, node.weight));
    if (s + (hi - 1) * node.weight >= bound_hi) hi = std::min(hi, ceil_div(bound_hi - s, node.weight));
  }

  bool is_innermost(size_t level) const { return level + 1 == nest_.nodes.size(); }

  void descend(size_t level, int64_t s, int64_t d, bool dead) {
    const Node& node = nest_.nodes[level];
    const Passes passes = passes_of(node, d, dead);
    if (passes.lo >= passes.hi) return;
    zero(level, d, passes.lo, passes.valid_lo);
    if (node.looks_up) {
      look_up(level, s, d, passes.valid_lo, passes.valid_hi);
    } else if (is_innermost(level)) {
      copy(node, s, d, passes.valid_lo, passes.valid_hi);
    } else if (level == column_level_) {
      if constexpr (kHasRectangles) columns(level, s, d, passes.valid_lo, passes.valid_hi);
    } else if (level == pixel_level_ && is_whole(level, d, passes)) {
      if constexpr (kHasRectangles) {
        pixels(level + 1, s, d);
        move_groups();
      }
    } else {
      const int64_t first = passes.valid_lo + repeat_columns(level, s, d, passes);
      for (int64_t i = first; i < passes.valid_hi; ++i) pass(level, i, s + i * node.source_stride, d, false);
    }
    zero(level, d, passes.valid_hi, passes.hi);
  }

  // One pass of a loop that is not the innermost.
  void pass(size_t level, int64_t i, int64_t s, int64_t d, bool dead) {
    step(level, i, [&](const Node& node) { descend(level + 1, s, d + i * node.destination_stride, dead); });
  }

  template <class Body>
  void step(size_t level, int64_t i, Body body) {
    const Node& node = nest_.nodes[level];
    if (node.variable != kNone) index_[node.variable] += i * node.weight;
    if (node.lookup != kNone) lookup_index_[node.lookup] += i * node.lookup_stride;
    body(node);
    if (node.variable != kNone) index_[node.variable] -= i * node.weight;
    if (node.lookup != kNone) lookup_index_[node.lookup] -= i * node.lookup_stride;
  }

  // A loop in which the source offset becomes known only with each pass.
  void look_up(size_t level, int64_t s, int64_t d, int64_t lo, int64_t hi) {
    const Node& node = nest_.nodes[level];
    const Lookup& lookup = nest_.lookups[node.lookup];
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t offset = lookup.at(lookup_index_[node.lookup] + i * node.lookup_stride);
      if (offset == kSkip) continue;
      if (offset == kHole) {
        zero(level, d, i, i + 1);
      } else if (is_innermost(level)) {
        copy_one(s + i * node.source_stride + offset, d + i * node.destination_stride);
      } else {
        pass(level, i, s + i * node.source_stride + offset, d, false);
      }
    }
  }

  // Passes that the range cuts are walked; the others, which it holds as a whole, become rectangles.
  void columns(size_t level, int64_t s, int64_t d, int64_t lo, int64_t hi) {
    const Node& node = nest_.nodes[level];
    const int64_t stride = node.destination_stride;
    const int64_t whole_lo = d < begin_ ? std::clamp(ceil_div(begin_ - d, stride), lo, hi) : lo;
    const int64_t whole_hi = std::clamp(floor_div(end_ - d - node.span, stride) + 1, whole_lo, hi);
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
    constexpr int64_t kCacheLine = 64;
    constexpr int64_t kChunkBytes = 16 << 10;
    constexpr int64_t kFewestColumns = 256;
    constexpr int64_t kManyLines = 4;
    const int64_t run = nest_.nodes.back().count * Element::kSize;
    const bool has_lines = (run | nest_.nodes[level].destination_stride * Element::kSize) % kCacheLine == 0;
    if (is_innermost(level + 1) || has_lines || run >= kManyLines * kCacheLine) return columns;
    const int64_t line = std::max<int64_t>(kCacheLine / Element::kSize, 1);
    const int64_t kept = kChunkBytes / (nest_.nodes[level].span * Element::kSize) / line * line;
    return std::max(kept, kFewestColumns);
  }

  // As descend, for several columns at once, all inside the range.
  void descend_columns(size_t level, int64_t s, int64_t d, const Columns& columns) {
    const Node& node = nest_.nodes[level];
    Passes passes = passes_of(node, d, false);
    if (passes.lo >= passes.hi) return;
    if (!is_innermost(level) && zero_all_columns(node, d, passes, columns)) {
      passes.lo = passes.valid_lo;
      passes.hi = passes.valid_hi;
    }
    zero_columns(level, d, passes.lo, passes.valid_lo, columns);
    if (is_innermost(level) && passes.valid_lo < passes.valid_hi) {
      move(node, s, d, passes, columns);
      return;
    }
    if (chain_ != InnerLoops::Chain::kNone && chain_ != InnerLoops::Chain::kInterleaved &&
        is_innermost(level + 1) && move_chain(level, s, d, passes, columns)) {
      zero_columns(level, d, passes.valid_hi, passes.hi, columns);
      return;
    }
    const int64_t first = passes.valid_lo + interleave(level, s, d, passes, columns) +
                          repeat_chain(level, s, d, passes, columns);
    for (int64_t i = first; i < passes.valid_hi; ++i) {
      step(level, i, [&](const Node& at) {
        descend_columns(level + 1, s + i * at.source_stride, d + i * at.destination_stride, columns);
      });
    }
    zero_columns(level, d, passes.valid_hi, passes.hi, columns);
  }

  // Zeros of columns that lie one behind the other, with what is written over afterwards: a processor fetches
  // lines that are written in order before they are needed, and the others, then, are in the first-level
  // cache.
  bool zero_all_columns(const Node& node, int64_t d, const Passes& passes, const Columns& columns) {
    constexpr int64_t kMostBytes = 32 << 10;
    const int64_t elements = columns.count * columns.destination_stride;
    const bool has_zeros = passes.hi - passes.lo > passes.valid_hi - passes.valid_lo;
    if (!Element::kWritesZeros || !has_zeros || elements * Element::kSize > kMostBytes) return false;
    if (!node.dense || passes.lo != 0 || passes.hi != node.count) return false;
    if (node.span != node.destination_stride || node.count * node.span != columns.destination_stride)
      return false;
    Element::zero_run(destination_, d - begin_, elements);
    return true;
  }

  void zero_columns(size_t level, int64_t d, int64_t lo, int64_t hi, const Columns& columns) {
    if (lo >= hi) return;
    for (int64_t i = 0; i < columns.count; ++i) zero(level, d + i * columns.destination_stride, lo, hi);
  }

  // False where the tails of the loops make no box.
  bool move_chain(size_t level, int64_t s, int64_t d, const Passes& passes, const Columns& columns) {
    if constexpr (!kHasRectangles) return false;
    const Node& node = nest_.nodes[level];
    const Node& row = nest_.nodes[level + 1];
    if (node.variable != kNone && node.variable == row.variable) {
      return move_chain_with_rest(level, s, d, passes, columns);
    }
    const int64_t skipped = passes.valid_lo;
    s += skipped * node.source_stride;
    d += skipped * node.destination_stride;
    const Passes rows = passes_of(row, d, false);
    const Node& column = nest_.nodes[column_level_];
    // Crossed columns are what is counted, and may be fewer.
    const bool has_columns = column.source_stride != 1 || columns.count == column.count;
    const bool is_box = chain_ == InnerLoops::Chain::kColumns
                            ? rows.lo == rows.valid_lo && has_columns
                            : rows.valid_lo == 0 && rows.valid_hi == row.count;
    if (!is_box || rows.valid_lo >= rows.valid_hi || passes.valid_lo >= passes.valid_hi) return false;
    return Kernel::move_chain(
        rectangle(row, s, d, rows, columns),
        {chain_, passes.valid_hi - skipped, node.source_stride, node.destination_stride, 1, 0, 0});
  }

  // The last run of the chain ends early: source and destination do there.
  bool move_chain_with_rest(size_t level, int64_t s, int64_t d, const Passes& passes,
                            const Columns& columns) {
    const Node& node = nest_.nodes[level];
    const Node& row = nest_.nodes[level + 1];
    const int64_t whole = passes.valid_hi - 1;
    if (passes.valid_lo != 0 || whole < 1) return false;
    const Passes first = passes_of(row, d, false);
    Passes last{};
    step(level, whole,
         [&](const Node& at) { last = passes_of(row, d + whole * at.destination_stride, false); });
    const bool is_whole = first.valid_lo == 0 && first.valid_hi == row.count;
    if (!is_whole || last.valid_lo != 0 || last.valid_hi != last.hi || last.hi == row.count) return false;
    RectangleChain chain{chain_, whole, node.source_stride, node.destination_stride};
    chain.rest = last.valid_hi;
    return Kernel::move_chain(rectangle(row, s, d, first, columns), chain);
  }

  // Moves the chain of all passes of the loop around it where each is complete. The number of passes that
  // need nothing more.
  int64_t repeat_chain(size_t level, int64_t s, int64_t d, const Passes& passes, const Columns& columns) {
    if constexpr (!kHasRectangles) return 0;
    const int64_t count = passes.valid_hi - passes.valid_lo;
    if (count < 2 || !is_innermost(level + 2) || !repeats(level + 1)) return 0;
    if (columns.count != nest_.nodes[column_level_].count) return 0;
    return move_repeats(level, s, d, passes, columns, chain_at(level + 1)) ? count : 0;
  }

  // The same for the loop around the columns.
  int64_t repeat_columns(size_t level, int64_t s, int64_t d, const Passes& passes) {
    if constexpr (!kHasRectangles) return 0;
    const int64_t count = passes.valid_hi - passes.valid_lo;
    if (count < 2 || level + 1 != column_level_ || !is_same(level + 1)) return 0;
    const Node& node = nest_.nodes[level];
    const int64_t first = d + passes.valid_lo * node.destination_stride;
    const int64_t last = d + (passes.valid_hi - 1) * node.destination_stride + node.span;
    if (first < begin_ || last > end_) return 0;
    const Node& column = nest_.nodes[column_level_];
    const Columns all{column.count, column.source_stride, column.destination_stride};
    if (chain_ == InnerLoops::Chain::kInterleaved) {
      return interleave_repeats(level, s, d, passes, all) ? count : 0;
    }
    if (!is_innermost(level + 3) || !repeats(level + 1)) return 0;
    return move_repeats(level, s, d, passes, all, chain_at(level + 2)) ? count : 0;
  }

  // Whether there are chains that are the same in each pass of the loops around them.
  bool repeats(size_t level) const {
    if (chain_ != InnerLoops::Chain::kColumns && chain_ != InnerLoops::Chain::kRows) return false;
    return is_same(level);
  }

  // Whether the loops from `level` on are the same in each pass of those around them.
  bool is_same(size_t level) const {
    return std::all_of(nest_.nodes.begin() + static_cast<std::ptrdiff_t>(level), nest_.nodes.end(),
                       [](const Node& node) { return node.variable == kNone; });
  }

  RectangleChain chain_at(size_t level) const {
    const Node& node = nest_.nodes[level];
    return {chain_, node.count, node.source_stride, node.destination_stride};
  }

  // Moves a chain, complete rectangles of all `columns`, in all passes of the loop at `level`.
  bool move_repeats(size_t level, int64_t s, int64_t d, const Passes& passes, const Columns& columns,
                    RectangleChain chain) {
    const Node& node = nest_.nodes[level];
    const Node& row = nest_.nodes.back();
    chain.repeats = passes.valid_hi - passes.valid_lo;
    chain.repeat_source = node.source_stride;
    chain.repeat_destination = node.destination_stride;
    s += passes.valid_lo * node.source_stride;
    d += passes.valid_lo * node.destination_stride;
    return Kernel::move_chain(rectangle(row, s, d, {0, row.count, 0, row.count}, columns), chain);
  }

  // Moves interleaved tiles, of as many passes of the loop around them as are complete, or of this loop
  // alone. The number of passes that need nothing more.
  int64_t interleave(size_t level, int64_t s, int64_t d, const Passes& passes, const Columns& columns) {
    if constexpr (!kHasRectangles) return 0;
    if (chain_ != InnerLoops::Chain::kInterleaved || columns.count != nest_.nodes[column_level_].count)
      return 0;
    const int64_t count = passes.valid_hi - passes.valid_lo;
    if (is_innermost(level + 1)) {
      return passes.lo == 0 && move_interleaved(level, s, d, columns, {1, 0, 0}) ? count : 0;
    }
    if (!is_innermost(level + 2)) return 0;
    const Node& node = nest_.nodes[level];
    const int64_t whole = whole_passes(level, d, passes);
    const bool goes_on = node.source_stride == nest_.nodes.back().count * nest_.nodes.back().source_stride;
    if (whole == 0 || !goes_on) return 0;
    s += passes.valid_lo * node.source_stride;
    d += passes.valid_lo * node.destination_stride;
    const Columns around{whole, node.source_stride, node.destination_stride};
    return move_interleaved(level + 1, s, d, columns, around) ? whole : 0;
  }

  // Interleaved tiles of all passes of the loop around the columns, each with those of the loop between, if
  // there is one.
  bool interleave_repeats(size_t level, int64_t s, int64_t d, const Passes& passes, const Columns& columns) {
    const size_t beside_level = nest_.nodes.size() - 2;
    const Node& beside = nest_.nodes[beside_level];
    const Node& row = nest_.nodes.back();
    RectangleChain chain{chain_, 1, 0, 0, beside.count, 0, beside.source_stride};
    if (column_level_ + 2 == beside_level) {
      const Node& between = nest_.nodes[column_level_ + 1];
      if (between.source_stride != row.count * row.source_stride) return false;
      chain.count = between.count;
      chain.source_stride = between.source_stride;
      chain.destination_stride = between.destination_stride;
    } else if (column_level_ + 1 != beside_level) {
      return false;
    }
    return move_repeats(level, s, d, passes, columns, chain);
  }

  // Passes, from the first one on, of the second loop around the innermost one in which that one is complete
  // and the one between is the same.
  int64_t whole_passes(size_t level, int64_t d, const Passes& passes) {
    const Node& node = nest_.nodes[level];
    const Node& between = nest_.nodes[level + 1];
    const int64_t count = passes.valid_hi - passes.valid_lo;
    if (count <= 0 || (node.variable != kNone && node.variable == between.variable)) return 0;
    const auto is_whole = [&](int64_t i) {
      bool whole = false;
      step(level, i, [&](const Node& at) {
        const Passes rows = passes_of(nest_.nodes.back(), d + i * at.destination_stride, false);
        whole = rows.valid_lo == 0 && rows.valid_hi == nest_.nodes.back().count;
      });
      return whole;
    };
    if (!is_whole(passes.valid_lo)) return 0;
    return is_whole(passes.valid_hi - 1) ? count : count - 1;
  }

  // `level` is that of the loop around the innermost one; `around` has the passes of the loop around both.
  bool move_interleaved(size_t level, int64_t s, int64_t d, const Columns& columns, const Columns& around) {
    const Node& between = nest_.nodes[level];
    const Passes beside = passes_of(between, d, false);
    const Passes rows = passes_of(nest_.nodes.back(), d, false);
    const bool is_box = beside.valid_lo == 0 && beside.valid_hi > 0 && beside.hi == between.count &&
                        rows.valid_lo == 0 && rows.valid_hi > 0 && rows.hi == nest_.nodes.back().count;
    if (!is_box) return false;
    return Kernel::move_chain(rectangle(nest_.nodes.back(), s, d, rows, columns),
                              {chain_, around.count, around.source_stride, around.destination_stride,
                               beside.valid_hi, beside.hi - beside.valid_hi, between.source_stride});
  }

  void move(const Node& node, int64_t s, int64_t d, const Passes& passes, const Columns& columns) {
    Kernel::move(rectangle(node, s, d, passes, columns));
  }

  Rectangle rectangle(const Node& node, int64_t s, int64_t d, const Passes& passes,
                      const Columns& columns) const {
    const int64_t first = s + passes.valid_lo * node.source_stride;
    return {source_ + first * Element::kSize,
            destination_ + (d + passes.valid_lo - begin_) * Element::kSize,
            columns.count,
            passes.valid_hi - passes.valid_lo,
            passes.hi - passes.valid_hi,
            columns.source_stride,
            node.source_stride,
            columns.destination_stride,
            stores_};
  }

  // Whether every pass of a loop has a source, and lies in the range with all that is below it.
  bool is_whole(size_t level, int64_t d, const Passes& passes) const {
    const Node& node = nest_.nodes[level];
    return passes.valid_lo == 0 && passes.valid_hi == node.count && d >= begin_ &&
           d + (node.count - 1) * node.destination_stride + node.span <= end_;
  }

  static bool has_pixels(const LoopNest& nest, const InnerLoops& inner) {
    if (!inner.pixel_level) return false;
    const Node& pixel = nest.nodes[*inner.pixel_level];
    return Kernel::fits_pixels(nest.nodes.back().count, pixel.count, pixel.source_stride);
  }

  // As descend, for all passes of the loop at pixel_level_ at once.
  void pixels(size_t level, int64_t s, int64_t d) {
    const Node& node = nest_.nodes[level];
    const Passes passes = passes_of(node, d, false);
    if (passes.lo >= passes.hi) return;
    if (level == column_level_) {
      if (passes.valid_lo > 0) return each_pixel(level, s, d);
      if (passes.valid_hi > 0) add_group(s, d, passes.valid_hi);
    } else {
      for (int64_t i = passes.valid_lo; i < passes.valid_hi; ++i) {
        step(level, i, [&](const Node& at) {
          pixels(level + 1, s + i * at.source_stride, d + i * at.destination_stride);
        });
      }
    }
    const Node& pixel = nest_.nodes[pixel_level_];
    const Columns all{pixel.count, pixel.source_stride, pixel.destination_stride};
    zero_columns(level, d, passes.lo, passes.valid_lo, all);
    zero_columns(level, d, passes.valid_hi, passes.hi, all);
  }

  void each_pixel(size_t level, int64_t s, int64_t d) {
    const Node& pixel = nest_.nodes[pixel_level_];
    for (int64_t p = 0; p < pixel.count; ++p) {
      descend(level, s + p * pixel.source_stride, d + p * pixel.destination_stride, false);
    }
  }

  // Groups that go on in the destination where those before end are moved together.
  void add_group(int64_t s, int64_t d, int64_t channels) {
    const int64_t end = group_destination_ + group_count_ * group_channels_ * nest_.nodes.back().count;
    if (d != end || channels != group_channels_ || group_count_ == kMostGroups) move_groups();
    if (group_count_ == 0) {
      group_destination_ = d;
      group_channels_ = channels;
    }
    group_places_[group_count_++] = s;
  }

  void move_groups() {
    if (group_count_ == 0) return;
    const Node& pixel = nest_.nodes[pixel_level_];
    const Node& row = nest_.nodes.back();
    const Columns all{pixel.count, pixel.source_stride, pixel.destination_stride};
    Kernel::move_pixels(rectangle(row, 0, group_destination_, {0, row.count, 0, row.count}, all),
                        {group_places_, group_count_, pixel.source_stride, group_channels_});
    group_count_ = 0;
  }

  // Zeros in passes [lo, hi). The innermost loop is always a run: some digit of the destination has stride 1.
  void zero(size_t level, int64_t d, int64_t lo, int64_t hi) {
    if (!Element::kWritesZeros || lo >= hi) return;
    const Node& node = nest_.nodes[level];
    if (node.dense && node.span == node.destination_stride) {
      const int64_t first = std::max(d + lo * node.span, begin_);
      const int64_t last = std::min(d + hi * node.span, end_);
      if (first < last) Element::zero_run(destination_, first - begin_, last - first);
    } else {
      for (int64_t i = lo; i < hi; ++i) pass(level, i, 0, d, true);
    }
  }

  // The innermost loop: a run, or a row with strides.
  void copy(const Node& node, int64_t s, int64_t d, int64_t lo, int64_t hi) {
    if (lo >= hi) return;
    if constexpr (kTakesRows<Element>) {
      if (node.destination_stride == 1) {
        Element::take_row(s + lo * node.source_stride, node.source_stride, destination_, d + lo - begin_,
                          hi - lo);
        return;
      }
    }
    if (node.source_stride == 1 && node.destination_stride == 1) {
      Element::copy_run(source_, s + lo, destination_, d + lo - begin_, hi - lo);
      return;
    }
    for (int64_t i = lo; i < hi; ++i) copy_one(s + i * node.source_stride, d + i * node.destination_stride);
  }

  void copy_one(int64_t s, int64_t d) { Element::copy_one(source_, s, destination_, d - begin_); }

  const LoopNest& nest_;
  size_t column_level_;
  size_t pixel_level_;
  InnerLoops::Chain chain_;
  const uint8_t* source_;
  uint8_t* destination_;
  Stores stores_;
  int64_t begin_;
  int64_t end_;
  // Only as many as the nest has; an axis has at most one of each.
  int64_t index_[kMaxAxes];
  int64_t lookup_index_[kMaxAxes];
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
