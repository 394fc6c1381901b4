// Walks a nest box by box, for any range of the destination. Internal to each file, as nest_walk.h. What is
// done with a box is the `Mover`'s:
//
//   struct Mover {
//     // What it lists for all boxes of a state.
//     struct Moves { BoxMoves moves; ... };
//     void list(Moves& moves, const LoopNest& nest, const NestBox& box, const BoxState& state);
//     // The box whose first element stands at source element `s` and destination element `d`; at least one
//     of
//     // its places is in the range.
//     void move(const Moves& moves, int64_t s, int64_t d);
//   };
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "io/checked_math.h"
#include "reorder/nest_box.h"

namespace tilework {
namespace {

template <class Mover>
class BoxWalk {
 public:
  BoxWalk(const LoopNest& nest, const NestBox& box, int64_t begin, int64_t end, Mover& mover)
      : nest_(nest),
        box_(box),
        begin_(begin),
        end_(end),
        mover_(mover),
        index_(nest.variables.size()),
        lookup_index_(nest.lookups.size()),
        box_passes_(box.passes) {}

  void run() { step(0, nest_.source_base, nest_.destination_base); }

 private:
  void step(size_t at, int64_t s, int64_t d) {
    if (at == box_.stateful) {
      set_state();
      if (moves_->moves.empty()) return;
    }
    if (at == box_.order.size()) {
      mover_.move(*moves_, s, d);
      return;
    }
    const size_t level = box_.order[at];
    const Node& node = nest_.nodes[level];
    const int64_t passes = box_.passes[level];
    const int64_t stride = passes * node.destination_stride;
    const int64_t first = std::max<int64_t>(floor_div(begin_ - d - box_.reach[at], stride) + 1, 0);
    const int64_t last = std::min(ceil_div(node.count, passes), ceil_div(end_ - d, stride));
    for (int64_t i = first; i < last; ++i) {
      const int64_t pass = i * passes;
      if (at < box_.stateful) enter(level, pass);
      step(at + 1, s + pass * node.source_stride, d + i * stride);
      if (at < box_.stateful) leave(level, pass);
    }
  }

  void enter(size_t level, int64_t pass) {
    const Node& node = nest_.nodes[level];
    if (node.variable != kNone) index_[static_cast<size_t>(node.variable)] += pass * node.weight;
    if (node.lookup != kNone) lookup_index_[static_cast<size_t>(node.lookup)] += pass * node.lookup_stride;
    box_passes_[level] = std::min(box_.passes[level], node.count - pass);
  }

  void leave(size_t level, int64_t pass) {
    const Node& node = nest_.nodes[level];
    if (node.variable != kNone) index_[static_cast<size_t>(node.variable)] -= pass * node.weight;
    if (node.lookup != kNone) lookup_index_[static_cast<size_t>(node.lookup)] -= pass * node.lookup_stride;
  }

  // States come back: those of the ends of several loops take turns.
  void set_state() {
    next_.bounds.clear();
    for (const BoxIndex& index : box_.indices) next_.bounds.push_back(bounds_of(index));
    next_.lookups = lookup_index_;
    for (size_t i = 0; i < listed_; ++i) {
      if (known_[i].state == next_) {
        moves_ = &known_[i].moves;
        return;
      }
    }
    if (listed_ < kKnown) ++listed_;
    Known& known = known_[replaced_++ % kKnown];
    known.state = next_;
    mover_.list(known.moves, nest_, box_, known.state);
    moves_ = &known.moves;
  }

  BoxState::Bounds bounds_of(const BoxIndex& index) const {
    if (index.level != kNone) {
      const int64_t passes = box_passes_[static_cast<size_t>(index.level)];
      return {0, passes, 0, passes};
    }
    const Variable& variable = nest_.variables[static_cast<size_t>(index.variable)];
    const int64_t taken = index_[static_cast<size_t>(index.variable)];
    const auto inside = [&](int64_t bound) { return std::clamp(bound - taken, int64_t{0}, index.most + 1); };
    return {inside(variable.write_lo), inside(variable.write_hi), inside(variable.valid_lo),
            inside(variable.valid_hi)};
  }

  const LoopNest& nest_;
  const NestBox& box_;
  int64_t begin_;
  int64_t end_;
  Mover& mover_;
  std::vector<int64_t> index_;
  std::vector<int64_t> lookup_index_;
  std::vector<int64_t> box_passes_;
  BoxState next_;
  // The first, the last and the other boxes of two loops are nine states.
  static constexpr size_t kKnown = 9;
  struct Known {
    BoxState state;
    typename Mover::Moves moves;
  };
  std::array<Known, kKnown> known_;
  size_t listed_ = 0;
  size_t replaced_ = 0;
  const typename Mover::Moves* moves_ = nullptr;
};

}  // namespace
}  // namespace tilework
