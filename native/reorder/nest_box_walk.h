// Walks a nest box by box, for any range of the destination. Internal to each file, as nest_walk.h. What is
// done with a box is the `Mover`'s:
//
//   struct Mover {
//     // What it lists for all boxes of a state.
//     struct Moves { bool empty() const; ... };
//     void list(Moves& moves, const LoopNest& nest, const NestBox& box, const BoxState& state);
//     // The box whose first element stands at source element `s` and destination element `d`; at least one
//     // of its places is in the range.
//     void move(const Moves& moves, int64_t s, int64_t d);
//   };
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io/checked_math.h"
#include "reorder/nest_box.h"

namespace tilework {
namespace {

template <class Mover>
class BoxWalk {
 public:
  using Known = KnownMoves<typename Mover::Moves>;

  // `planned` moves need not be listed again.
  BoxWalk(const LoopNest& nest, const NestBox& box, std::span<const Known> planned, int64_t begin,
          int64_t end, Mover& mover)
      : nest_(nest),
        box_(box),
        planned_(planned),
        begin_(begin),
        end_(end),
        mover_(mover),
        place_(nest, box) {}

  void run() { step(0, nest_.source_base, nest_.destination_base); }

 private:
  void step(size_t at, int64_t s, int64_t d) {
    if (at == box_.stateful) {
      set_state();
      if (moves_->empty()) return;
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
      if (at < box_.stateful) place_.enter(level, pass);
      step(at + 1, s + pass * node.source_stride, d + i * stride);
      if (at < box_.stateful) place_.leave(level, pass);
    }
  }

  // States come back: those of the ends of several loops take turns.
  void set_state() {
    place_.get_state(next_);
    for (const Known& known : planned_) {
      if (known.state == next_) {
        moves_ = &known.moves;
        return;
      }
    }
    for (const std::unique_ptr<Known>& known : known_) {
      if (known->state == next_) {
        moves_ = &known->moves;
        return;
      }
    }
    if (known_.size() < kKnownStates) known_.push_back(std::make_unique<Known>());
    Known& known = *known_[replaced_++ % kKnownStates];
    known.state = next_;
    mover_.list(known.moves, nest_, box_, known.state);
    moves_ = &known.moves;
  }

  const LoopNest& nest_;
  const NestBox& box_;
  std::span<const Known> planned_;
  int64_t begin_;
  int64_t end_;
  Mover& mover_;
  BoxPlace place_;
  BoxState next_;
  std::vector<std::unique_ptr<Known>> known_;
  size_t replaced_ = 0;
  const typename Mover::Moves* moves_ = nullptr;
};

}  // namespace
}  // namespace tilework
