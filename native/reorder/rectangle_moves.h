// Hands the rectangles of a nest to a kernel: one by one, as chains of rectangles that go on, and as chains
// that repeat in the loop around them. Internal to each file, as nest_walk.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reorder/nest_range.h"
#include "reorder/rectangle.h"

namespace tilework {
namespace {

// Passes of the loop along columns that make one rectangle with every pass of the deeper loops, in elements.
struct RectangleColumns {
  int64_t count;
  int64_t source_stride;
  int64_t destination_stride;
};

// Offsets `s` and `d` are in elements of the storages, those of a loop's first pass. `source` stands at
// source element 0, `destination` at the first destination element of the range.
template <class Element, class Kernel>
class RectangleMoves {
 public:
  using Passes = NestRange::Passes;
  static constexpr size_t kNoLevel = SIZE_MAX;

  RectangleMoves(NestRange& range, const InnerLoops& inner, const uint8_t* source, uint8_t* destination,
                 Stores stores)
      : range_(range),
        column_level_(takes_rectangles(inner) ? *inner.column_level : kNoLevel),
        chain_(inner.chain),
        source_(source),
        destination_(destination),
        stores_(stores) {}

  // The loop along columns; kNoLevel where the kernel takes none of the nest's rectangles.
  size_t column_level() const { return column_level_; }

  // `rows` are the passes of the innermost loop, which begin at `s` and `d`.
  Rectangle rectangle(int64_t s, int64_t d, const Passes& rows, const RectangleColumns& columns) const {
    const Node& row = range_.innermost();
    const int64_t first = s + rows.valid_lo * row.source_stride;
    return {source_ + first * Element::kSize,
            destination_ + (d + rows.valid_lo - range_.begin()) * Element::kSize,
            columns.count,
            rows.valid(),
            rows.hi - rows.valid_hi,
            columns.source_stride,
            row.source_stride,
            columns.destination_stride,
            stores_};
  }

  // Moves the passes of the loop around the innermost one as a chain. False where they make none: where tails
  // make them no box, or the kernel has no way of its own.
  bool move_chain(size_t level, int64_t s, int64_t d, const Passes& passes, const RectangleColumns& columns) {
    if (chain_ == Chain::kNone || chain_ == Chain::kInterleaved || !range_.is_innermost(level + 1))
      return false;
    const Node& node = range_.node(level);
    const Node& row = range_.innermost();
    if (node.variable != kNone && node.variable == row.variable) {
      return move_chain_with_rest(level, s, d, passes, columns);
    }
    s += passes.valid_lo * node.source_stride;
    d += passes.valid_lo * node.destination_stride;
    const Passes rows = range_.passes_of(row, d, false);
    const Node& column = range_.node(column_level_);
    // Crossed columns are what is counted, and may be fewer.
    const bool has_columns = column.source_stride != 1 || columns.count == column.count;
    const bool is_box =
        chain_ == Chain::kColumns ? rows.lo == rows.valid_lo && has_columns : has_all(rows, row);
    if (!is_box || rows.valid() <= 0 || passes.valid() <= 0) return false;
    return Kernel::move_chain(rectangle(s, d, rows, columns),
                              {chain_, passes.valid(), node.source_stride, node.destination_stride});
  }

  // Moves at once what passes of a loop between that of the columns and the innermost one have. How many of
  // them, from the first with a source on, need nothing more.
  int64_t repeat_inside(size_t level, int64_t s, int64_t d, const Passes& passes,
                        const RectangleColumns& columns) {
    if (columns.count != range_.node(column_level_).count) return 0;
    if (chain_ == Chain::kInterleaved) return interleave(level, s, d, passes, columns);
    if (passes.valid() < 2 || !range_.is_innermost(level + 2) || !repeats_chain(level + 1)) return 0;
    return move_repeats(level, s, d, passes, columns, chain_at(level + 1)) ? passes.valid() : 0;
  }

  // The same for the loop around that of the columns.
  int64_t repeat_around(size_t level, int64_t s, int64_t d, const Passes& passes) {
    if (passes.valid() < 2 || level + 1 != column_level_ || !has_no_tails(level + 1)) return 0;
    if (!range_.holds(range_.node(level), d, passes)) return 0;
    const Node& column = range_.node(column_level_);
    const RectangleColumns all{column.count, column.source_stride, column.destination_stride};
    if (chain_ == Chain::kInterleaved) {
      return interleave_repeats(level, s, d, passes, all) ? passes.valid() : 0;
    }
    if (!range_.is_innermost(level + 3) || !repeats_chain(level + 1)) return 0;
    return move_repeats(level, s, d, passes, all, chain_at(level + 2)) ? passes.valid() : 0;
  }

 private:
  using Chain = InnerLoops::Chain;

  static bool takes_rectangles(const InnerLoops& inner) {
    return Kernel::kClass != NestClass::kLoopNest && inner.nest_class == Kernel::kClass && inner.column_level;
  }

  static bool has_all(const Passes& passes, const Node& node) {
    return passes.valid_lo == 0 && passes.valid_hi == node.count;
  }

  // The last run of the chain ends early: source and destination do there.
  bool move_chain_with_rest(size_t level, int64_t s, int64_t d, const Passes& passes,
                            const RectangleColumns& columns) {
    const Node& node = range_.node(level);
    const Node& row = range_.innermost();
    const int64_t whole = passes.valid_hi - 1;
    if (passes.valid_lo != 0 || whole < 1) return false;
    const Passes first = range_.passes_of(row, d, false);
    const Passes last = rows_in_pass(level, whole, d);
    if (!has_all(first, row)) return false;
    if (last.valid_lo != 0 || last.valid_hi != last.hi || last.hi == row.count) return false;
    RectangleChain chain{chain_, whole, node.source_stride, node.destination_stride};
    chain.rest = last.valid_hi;
    return Kernel::move_chain(rectangle(s, d, first, columns), chain);
  }

  // Passes of the innermost loop in pass `i` of the one at `level`.
  Passes rows_in_pass(size_t level, int64_t i, int64_t d) {
    Passes rows{};
    range_.in_pass(level, i, [&](const Node& node) {
      rows = range_.passes_of(range_.innermost(), d + i * node.destination_stride, false);
    });
    return rows;
  }

  // Whether there are chains that are the same in each pass of the loops around them.
  bool repeats_chain(size_t level) const {
    return (chain_ == Chain::kColumns || chain_ == Chain::kRows) && has_no_tails(level);
  }

  // Whether the loops from `level` on are the same in each pass of those around them.
  bool has_no_tails(size_t level) const {
    const std::vector<Node>& nodes = range_.nest().nodes;
    return std::all_of(nodes.begin() + static_cast<std::ptrdiff_t>(level), nodes.end(),
                       [](const Node& node) { return node.variable == kNone; });
  }

  RectangleChain chain_at(size_t level) const {
    const Node& node = range_.node(level);
    return {chain_, node.count, node.source_stride, node.destination_stride};
  }

  // Moves a chain, complete rectangles of all `columns`, in all passes of the loop at `level`.
  bool move_repeats(size_t level, int64_t s, int64_t d, const Passes& passes, const RectangleColumns& columns,
                    RectangleChain chain) {
    const Node& node = range_.node(level);
    const int64_t rows = range_.innermost().count;
    chain.repeats = passes.valid();
    chain.repeat_source = node.source_stride;
    chain.repeat_destination = node.destination_stride;
    s += passes.valid_lo * node.source_stride;
    d += passes.valid_lo * node.destination_stride;
    return Kernel::move_chain(rectangle(s, d, {0, rows, 0, rows}, columns), chain);
  }

  // Interleaved tiles, of as many passes of the loop around them as are complete, or of this loop alone.
  int64_t interleave(size_t level, int64_t s, int64_t d, const Passes& passes,
                     const RectangleColumns& columns) {
    if (range_.is_innermost(level + 1)) {
      return passes.lo == 0 && move_interleaved(level, s, d, columns, {1, 0, 0}) ? passes.valid() : 0;
    }
    if (!range_.is_innermost(level + 2)) return 0;
    const Node& node = range_.node(level);
    const Node& row = range_.innermost();
    const int64_t whole = whole_passes(level, d, passes);
    if (whole == 0 || node.source_stride != row.count * row.source_stride) return 0;
    s += passes.valid_lo * node.source_stride;
    d += passes.valid_lo * node.destination_stride;
    const RectangleColumns around{whole, node.source_stride, node.destination_stride};
    return move_interleaved(level + 1, s, d, columns, around) ? whole : 0;
  }

  // Interleaved tiles of all passes of the loop around the columns, each with those of the loop between, if
  // there is one.
  bool interleave_repeats(size_t level, int64_t s, int64_t d, const Passes& passes,
                          const RectangleColumns& columns) {
    const size_t beside_level = range_.nest().nodes.size() - 2;
    const Node& beside = range_.node(beside_level);
    const Node& row = range_.innermost();
    RectangleChain chain{chain_, 1, 0, 0, beside.count, 0, beside.source_stride};
    if (column_level_ + 2 == beside_level) {
      const Node& between = range_.node(column_level_ + 1);
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
    const Node& node = range_.node(level);
    const Node& between = range_.node(level + 1);
    if (passes.valid() <= 0 || (node.variable != kNone && node.variable == between.variable)) return 0;
    const auto is_whole = [&](int64_t i) { return has_all(rows_in_pass(level, i, d), range_.innermost()); };
    if (!is_whole(passes.valid_lo)) return 0;
    return is_whole(passes.valid_hi - 1) ? passes.valid() : passes.valid() - 1;
  }

  // `level` is that of the loop around the innermost one; `around` has the passes of the loop around both.
  bool move_interleaved(size_t level, int64_t s, int64_t d, const RectangleColumns& columns,
                        const RectangleColumns& around) {
    const Node& between = range_.node(level);
    const Passes beside = range_.passes_of(between, d, false);
    const Passes rows = range_.passes_of(range_.innermost(), d, false);
    const auto ends_with_loop = [](const Passes& passes, const Node& node) {
      return passes.valid_lo == 0 && passes.valid_hi > 0 && passes.hi == node.count;
    };
    if (!ends_with_loop(beside, between) || !ends_with_loop(rows, range_.innermost())) return false;
    return Kernel::move_chain(rectangle(s, d, rows, columns),
                              {chain_, around.count, around.source_stride, around.destination_stride,
                               beside.valid_hi, beside.hi - beside.valid_hi, between.source_stride});
  }

  NestRange& range_;
  size_t column_level_;
  Chain chain_;
  const uint8_t* source_;
  uint8_t* destination_;
  Stores stores_;
};

}  // namespace
}  // namespace tilework
