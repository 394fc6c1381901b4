// The expected result of a large reorder. Like oracle.h it follows the definition of a layout and shares no
// code with the join, but it computes the offsets of each group of axes that share digits once, in a table,
// so that an element costs two additions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "facts/limits.h"
#include "layout/digits.h"
#include "layout/slice.h"
#include "packed_elements.h"
#include "reorder/plan/plan.h"

namespace tilework::test {

// Coordinates [lo, hi) of each axis.
struct Box {
  std::vector<int64_t> lo;
  std::vector<int64_t> hi;
};

// Offsets of the elements of one piece of a side, which has less than 2^31. An element at `x` of a plan is
// element start + step * x of the side.
class OffsetTables {
 public:
  OffsetTables(const std::vector<int64_t>& shape, const std::vector<int64_t>& side_shape, const Side& side,
               const Piece& piece, const std::optional<Slice>& slice)
      : group_of_(shape.size()), stride_of_(shape.size()) {
    for (const std::vector<size_t>& axes : groups_of(shape.size(), piece)) {
      int64_t size = 1;
      for (size_t i = axes.size(); i-- > 0;) {
        group_of_[axes[i]] = tables_.size();
        stride_of_[axes[i]] = size;
        size *= shape[axes[i]];
      }
      tables_.push_back(table_of(shape, side_shape, side, piece, slice, axes, size));
    }
  }

  size_t groups() const { return tables_.size(); }
  size_t group_of(size_t axis) const { return group_of_[axis]; }
  int64_t stride_of(size_t axis) const { return stride_of_[axis]; }
  const std::vector<int32_t>& table(size_t group) const { return tables_[group]; }

 private:
  // Axes that share a digit depend on each other.
  static std::vector<std::vector<size_t>> groups_of(size_t rank, const Piece& piece) {
    std::vector<size_t> first(rank);
    std::iota(first.begin(), first.end(), size_t{0});
    for (size_t repeat = 0; repeat < rank; ++repeat) {
      for (const Digit& digit : piece.digits) {
        size_t least = rank;
        for (int axis : digit.axes) least = std::min(least, first[static_cast<size_t>(axis)]);
        for (int axis : digit.axes) first[static_cast<size_t>(axis)] = least;
      }
    }
    std::vector<std::vector<size_t>> groups;
    for (size_t axis = 0; axis < rank; ++axis) {
      std::vector<size_t> group;
      for (size_t other = axis; other < rank && first[axis] == axis; ++other) {
        if (first[other] == axis) group.push_back(other);
      }
      if (!group.empty()) groups.push_back(group);
    }
    return groups;
  }

  // What a digit of the group adds to an offset: its value, times the radices of the digits below it.
  struct OwnDigit {
    const Digit* digit;
    int64_t factor;
  };

  static std::vector<OwnDigit> digits_of(const Piece& piece, const std::vector<size_t>& axes) {
    std::vector<OwnDigit> own;
    int64_t factor = 1;
    for (size_t i = piece.digits.size(); i-- > 0; factor *= piece.digits[i].radix) {
      const Digit& digit = piece.digits[i];
      if (std::find(axes.begin(), axes.end(), digit.axes[0]) != axes.end()) own.push_back({&digit, factor});
    }
    return own;
  }

  static std::vector<int32_t> table_of(const std::vector<int64_t>& shape,
                                       const std::vector<int64_t>& side_shape, const Side& side,
                                       const Piece& piece, const std::optional<Slice>& slice,
                                       const std::vector<size_t>& axes, int64_t size) {
    const std::vector<OwnDigit> own = digits_of(piece, axes);
    std::vector<int64_t> x(shape.size(), 0);
    std::vector<int32_t> table(static_cast<size_t>(size));
    for (int32_t& entry : table) {
      int64_t offset = 0;
      for (const auto& [digit, factor] : own) {
        int64_t fused = 0;
        for (int axis : digit->axes) {
          const auto a = static_cast<size_t>(axis);
          const int64_t at = (slice ? slice->start[a] + slice->step[a] * x[a] : x[a]) + side.lower[a];
          fused = fused * (side_shape[a] + side.lower[a] + side.upper[a]) + at;
        }
        offset += fused / digit->weight % digit->radix * factor;
      }
      entry = static_cast<int32_t>(offset);
      for (size_t i = axes.size(); i-- > 0 && ++x[axes[i]] == shape[axes[i]];) x[axes[i]] = 0;
    }
    return table;
  }

  std::vector<size_t> group_of_;
  std::vector<int64_t> stride_of_;
  std::vector<std::vector<int32_t>> tables_;
};

// The coordinates of a plan whose elements a piece of a side has: pieces divide one axis.
inline Box box_of(const std::vector<int64_t>& shape, const Side& side, const Piece& piece,
                  const std::optional<Slice>& slice) {
  Box box{std::vector<int64_t>(shape.size(), 0), shape};
  if (shape.empty()) return box;
  const auto axis = static_cast<size_t>(piece.axis);
  const auto is_inside = [&](int64_t x) {
    const int64_t at = (slice ? slice->start[axis] + slice->step[axis] * x : x) + side.lower[axis];
    return at >= piece.lo && at < piece.hi;
  };
  while (box.lo[axis] < box.hi[axis] && !is_inside(box.lo[axis])) ++box.lo[axis];
  while (box.lo[axis] < box.hi[axis] && !is_inside(box.hi[axis] - 1)) --box.hi[axis];
  return box;
}

// Calls move(source offset, destination offset) for each element, in any order.
template <class Move>
void each_move(const ReorderDescription& description, Move move) {
  const std::vector<int64_t>& shape = description.shape;
  const std::vector<int64_t>& source_shape = description.slice ? description.slice->shape : shape;
  for (const Piece& to : description.to.pieces) {
    const OffsetTables destination(shape, shape, description.to, to, std::nullopt);
    const Box written = box_of(shape, description.to, to, std::nullopt);
    for (const Piece& from : description.from.pieces) {
      const OffsetTables source(shape, source_shape, description.from, from, description.slice);
      const Box read = box_of(shape, description.from, from, description.slice);
      Box box = written;
      bool is_empty = false;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        box.lo[axis] = std::max(box.lo[axis], read.lo[axis]);
        box.hi[axis] = std::min(box.hi[axis], read.hi[axis]);
        is_empty = is_empty || box.lo[axis] >= box.hi[axis];
      }
      if (!is_empty) each_move_in(box, source, destination, move);
    }
  }
}

// The offsets of one side along one axis, for fixed coordinates of the others.
struct AxisOffsets {
  int64_t base;
  const int32_t* table;
  int64_t stride;
  int64_t at(int64_t x) const { return base + table[x * stride]; }
};

inline AxisOffsets offsets_along(const OffsetTables& tables, size_t axis, const std::vector<int64_t>& at) {
  std::array<int64_t, kMaxPlannedAxes> index{};
  for (size_t other = 0; other < at.size(); ++other) {
    if (other != axis) index[tables.group_of(other)] += at[other] * tables.stride_of(other);
  }
  const size_t own = tables.group_of(axis);
  int64_t base = 0;
  for (size_t group = 0; group < tables.groups(); ++group) {
    if (group != own) base += tables.table(group)[static_cast<size_t>(index[group])];
  }
  return {base, tables.table(own).data() + index[own], tables.stride_of(axis)};
}

// The longest axis is the inner one, so that there are few rows.
template <class Move>
void each_move_in(const Box& box, const OffsetTables& source, const OffsetTables& destination, Move move) {
  const size_t rank = box.lo.size();
  if (rank == 0) return move(int64_t{0}, int64_t{0});
  size_t inner = 0;
  for (size_t axis = 1; axis < rank; ++axis) {
    if (box.hi[axis] - box.lo[axis] >= box.hi[inner] - box.lo[inner]) inner = axis;
  }
  std::vector<int64_t> at = box.lo;
  for (;;) {
    const AxisOffsets from = offsets_along(source, inner, at);
    const AxisOffsets to = offsets_along(destination, inner, at);
    for (int64_t x = box.lo[inner]; x < box.hi[inner]; ++x) move(from.at(x), to.at(x));
    size_t axis = 0;
    for (; axis < rank; ++axis) {
      if (axis == inner) continue;
      if (++at[axis] < box.hi[axis]) break;
      at[axis] = box.lo[axis];
    }
    if (axis == rank) return;
  }
}

template <class Unit>
void move_all(const ReorderDescription& description, const uint8_t* source, uint8_t* destination) {
  each_move(description, [=](int64_t from, int64_t to) {
    std::memcpy(destination + to * int64_t{sizeof(Unit)}, source + from * int64_t{sizeof(Unit)},
                sizeof(Unit));
  });
}

struct Bytes16 {
  uint64_t parts[2];
};

// Elements below a byte are a byte each while they move.
template <int kBits>
void move_packed(const ReorderDescription& description, const uint8_t* source, uint8_t* destination) {
  std::vector<uint8_t> from(static_cast<size_t>(description.from.elements));
  std::vector<uint8_t> to(static_cast<size_t>(description.to.elements), 0);
  for (size_t i = 0; i < from.size(); ++i) from[i] = packed_element(source, kBits, static_cast<int64_t>(i));
  move_all<uint8_t>(description, from.data(), to.data());
  for (size_t i = 0; i < to.size(); ++i)
    store_packed_element(destination, kBits, static_cast<int64_t>(i), to[i]);
}

// Writes the elements of a reorder without casts to `destination`, which has zeros; elements of `bits`.
inline void move_elements(const ReorderDescription& description, int bits, const uint8_t* source,
                          uint8_t* destination) {
  switch (bits) {
    case 8:
      return move_all<uint8_t>(description, source, destination);
    case 16:
      return move_all<uint16_t>(description, source, destination);
    case 32:
      return move_all<uint32_t>(description, source, destination);
    case 64:
      return move_all<uint64_t>(description, source, destination);
    case 128:
      return move_all<Bytes16>(description, source, destination);
    case 2:
      return move_packed<2>(description, source, destination);
    case 4:
      return move_packed<4>(description, source, destination);
    default:
      return move_packed<6>(description, source, destination);
  }
}

}  // namespace tilework::test
