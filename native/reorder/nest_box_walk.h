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
        place_(nest, box),
        box_span_(span_of_box()) {
    for (size_t level : box.order)
      loops_.push_back({0, ceil_div(nest.nodes[level].count, box.passes[level])});
    for (size_t at = 0; at < loops_.size(); ++at) by_destination_.push_back(at);
    std::sort(by_destination_.begin(), by_destination_.end(),
              [&box](size_t a, size_t b) { return box.order[a] < box.order[b]; });
  }

  void run() { walk_ends(0); }

 private:
  // A loop that goes from box to box, in the box's order.
  struct Loop {
    // Its passes that are walked, each of as many passes of the nest as a box has.
    int64_t first;
    int64_t last;
    // Destination elements from the first pass of the deeper loops of the order to their first that is
    // walked, and from there to behind the last.
    int64_t low = 0;
    int64_t reach = 0;
  };

  int64_t stride_of(size_t at) const {
    const size_t level = box_.order[at];
    return box_.passes[level] * nest_.nodes[level].destination_stride;
  }

  // Destination elements from the first to behind the last one of the loop's passes that are walked, but for
  // those of one box.
  int64_t span_of(size_t at) const {
    const size_t level = box_.order[at];
    const int64_t passes = box_.passes[level];
    const int64_t last = std::min(loops_[at].last * passes, nest_.nodes[level].count);
    return (last - (loops_[at].first + 1) * passes) * nest_.nodes[level].destination_stride;
  }

  int64_t span_of_box() const {
    int64_t span = 1;
    for (size_t level = 0; level < box_.passes.size(); ++level) {
      span += (box_.passes[level] - 1) * nest_.nodes[level].destination_stride;
    }
    return span;
  }

  // Loops that change the state are walked outside of others, also of those that step farther in the
  // destination. Of these the range may have few passes, or parts of them: the passes at its ends are walked
  // each by itself, so that no pass of a loop inside is come to that lies outside of the range.
  void walk_ends(size_t outer) {
    if (outer == by_destination_.size()) return walk();
    const size_t at = by_destination_[outer];
    const Loop all = loops_[at];
    const int64_t stride = stride_of(at);
    int64_t begin = begin_ - nest_.destination_base;
    int64_t reach = box_span_;
    for (size_t i = 0; i < outer; ++i)
      begin -= loops_[by_destination_[i]].first * stride_of(by_destination_[i]);
    for (size_t i = outer + 1; i < by_destination_.size(); ++i) reach += span_of(by_destination_[i]);
    const int64_t end = begin + (end_ - begin_);
    const int64_t first = std::max(all.first, floor_div(begin - reach, stride) + 1);
    const int64_t last = std::min(all.last, ceil_div(end, stride));
    const int64_t whole = std::clamp(ceil_div(begin, stride), first, std::max(first, last));
    const int64_t behind = std::clamp(floor_div(end - reach, stride) + 1, whole, std::max(whole, last));
    const int64_t cut = whole - first + last - behind;
    // Passes that lie inside of each other are many.
    constexpr int64_t kBothEnds = 2;
    if (cut > kBothEnds) {
      walk_passes(at, first, last);
    } else {
      for (int64_t i = first; i < whole; ++i) walk_pass(outer, i);
      walk_passes(at, whole, behind);
      for (int64_t i = behind; i < last; ++i) walk_pass(outer, i);
    }
    loops_[at] = all;
  }

  void walk_pass(size_t outer, int64_t pass) {
    Loop& loop = loops_[by_destination_[outer]];
    loop.first = pass;
    loop.last = pass + 1;
    walk_ends(outer + 1);
  }

  void walk_passes(size_t at, int64_t first, int64_t last) {
    if (first >= last) return;
    loops_[at].first = first;
    loops_[at].last = last;
    walk();
  }

  void walk() {
    int64_t low = 0;
    int64_t reach = box_span_;
    for (size_t at = loops_.size(); at-- > 0;) {
      loops_[at].low = low;
      loops_[at].reach = reach;
      low += loops_[at].first * stride_of(at);
      reach += span_of(at);
    }
    step(0, nest_.source_base, nest_.destination_base);
  }

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
    const Loop& loop = loops_[at];
    const int64_t passes = box_.passes[level];
    const int64_t stride = passes * node.destination_stride;
    const int64_t from = d + loop.low;
    const int64_t first = std::max(loop.first, floor_div(begin_ - from - loop.reach, stride) + 1);
    const int64_t last = std::min(loop.last, ceil_div(end_ - from, stride));
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
  int64_t box_span_;
  std::vector<Loop> loops_;
  // Places in the order, of the loops that step farther in the destination first.
  std::vector<size_t> by_destination_;
  BoxState next_;
  std::vector<std::unique_ptr<Known>> known_;
  size_t replaced_ = 0;
  const typename Mover::Moves* moves_ = nullptr;
};

}  // namespace
}  // namespace tilework
