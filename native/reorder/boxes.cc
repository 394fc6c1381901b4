#include "reorder/boxes.h"

#include <algorithm>
#include <utility>

#include "io/checked_math.h"
#include "layout/loop_nest.h"

namespace tilework {
namespace {

// Splits a box by one variable, from its loop with the largest weight on.
class Splitter {
 public:
  Splitter(const LoopNest& nest, int variable) : nest_(nest) {
    for (size_t i = 0; i < nest.nodes.size(); ++i) {
      if (nest.nodes[i].variable == variable) loops_.push_back(i);
    }
    std::sort(loops_.begin(), loops_.end(),
              [&nest](size_t a, size_t b) { return nest.nodes[a].weight > nest.nodes[b].weight; });
  }

  std::vector<Box> split(const Box& box, Passes values) {
    split_from(0, box, values);
    return std::move(parts_);
  }

 private:
  // `values` are those that the loops from `at` on may add.
  void split_from(size_t at, const Box& box, Passes values) {
    int64_t least = 0;
    int64_t most = 0;
    for (size_t i = at; i < loops_.size(); ++i) {
      least += box[loops_[i]].begin * weight(i);
      most += (box[loops_[i]].end - 1) * weight(i);
    }
    if (most < values.begin || least >= values.end) return;
    if (least >= values.begin && most < values.end) {
      parts_.push_back(box);
      return;
    }
    const Passes passes = box[loops_[at]];
    const int64_t step = weight(at);
    const int64_t deeper_least = least - passes.begin * step;
    const int64_t deeper_most = most - (passes.end - 1) * step;
    const int64_t first = std::max(passes.begin, ceil_div(values.begin - deeper_most, step));
    const int64_t last = std::min(passes.end, ceil_div(values.end - deeper_least, step));
    // Of the passes that reach into the values, those in the middle lie inside with all deeper ones.
    const int64_t inside =
        std::clamp(ceil_div(values.begin - deeper_least, step), first, std::max(first, last));
    const int64_t behind =
        std::clamp(ceil_div(values.end - deeper_most, step), inside, std::max(inside, last));
    for (int64_t i = first; i < inside; ++i) enter(at, i, box, values);
    if (inside < behind) {
      Box part = box;
      part[loops_[at]] = {inside, behind};
      parts_.push_back(std::move(part));
    }
    for (int64_t i = behind; i < last; ++i) enter(at, i, box, values);
  }

  void enter(size_t at, int64_t pass, const Box& box, Passes values) {
    Box part = box;
    part[loops_[at]] = {pass, pass + 1};
    const int64_t taken = pass * weight(at);
    split_from(at + 1, part, {values.begin - taken, values.end - taken});
  }

  int64_t weight(size_t at) const { return nest_.nodes[loops_[at]].weight; }

  const LoopNest& nest_;
  std::vector<size_t> loops_;
  std::vector<Box> parts_;
};

// Cuts a range of the destination: whole passes of a loop are a box, the first and the last, which the range
// may cut, are looked into.
class Cutter {
 public:
  Cutter(const LoopNest& nest, int64_t begin, int64_t end, size_t most)
      : nest_(nest),
        begin_(begin),
        end_(end),
        most_(most),
        box_(nest.nodes.size()),
        index_(nest.variables.size()) {}

  std::optional<std::vector<Box>> cut() {
    descend(0, nest_.destination_base);
    return boxes_.size() > most_ ? std::nullopt : std::optional(std::move(boxes_));
  }

 private:
  void descend(size_t level, int64_t d) {
    if (boxes_.size() > most_) return;
    if (level == nest_.nodes.size()) {
      boxes_.push_back(box_);
      return;
    }
    const Node& node = nest_.nodes[level];
    const int64_t stride = node.destination_stride;
    int64_t first = std::max<int64_t>(0, floor_div(begin_ - d - node.span, stride) + 1);
    int64_t last = std::min(node.count, ceil_div(end_ - d, stride));
    if (node.variable != kNone) {
      const Variable& bounds = nest_.variables[node.variable];
      const int64_t index = index_[node.variable];
      first = std::max(first, ceil_div(bounds.write_lo - index - node.below, node.weight));
      last = std::min(last, ceil_div(bounds.write_hi - index, node.weight));
    }
    const int64_t whole = std::clamp(ceil_div(begin_ - d, stride), first, std::max(first, last));
    const int64_t behind =
        std::clamp(floor_div(end_ - d - node.span, stride) + 1, whole, std::max(whole, last));
    for (int64_t i = first; i < whole; ++i) enter(level, i, d);
    if (whole < behind) take(level, {whole, behind});
    for (int64_t i = behind; i < last; ++i) enter(level, i, d);
  }

  void enter(size_t level, int64_t pass, int64_t d) {
    const Node& node = nest_.nodes[level];
    box_[level] = {pass, pass + 1};
    if (node.variable != kNone) index_[node.variable] += pass * node.weight;
    descend(level + 1, d + pass * node.destination_stride);
    if (node.variable != kNone) index_[node.variable] -= pass * node.weight;
  }

  // All deeper passes, but for those that no variable writes.
  void take(size_t level, Passes passes) {
    box_[level] = passes;
    for (size_t i = level + 1; i < box_.size(); ++i) box_[i] = {0, nest_.nodes[i].count};
    std::vector<Box> boxes = {box_};
    for (size_t variable = 0; variable < nest_.variables.size(); ++variable) {
      const Passes written{nest_.variables[variable].write_lo, nest_.variables[variable].write_hi};
      std::vector<Box> parts;
      for (const Box& box : boxes) {
        for (Box& part : parts_within(nest_, box, static_cast<int>(variable), written)) {
          parts.push_back(std::move(part));
        }
      }
      boxes = std::move(parts);
      if (boxes.size() > most_) break;
    }
    boxes_.insert(boxes_.end(), boxes.begin(), boxes.end());
  }

  const LoopNest& nest_;
  int64_t begin_;
  int64_t end_;
  size_t most_;
  Box box_;
  std::vector<int64_t> index_;
  std::vector<Box> boxes_;
};

}  // namespace

std::vector<Box> parts_within(const LoopNest& nest, const Box& box, int variable, Passes values) {
  return Splitter(nest, variable).split(box, values);
}

std::optional<std::vector<Box>> boxes_of(const LoopNest& nest, int64_t begin, int64_t end, size_t most) {
  return Cutter(nest, begin, end, most).cut();
}

void count_passes_of(const Box& box, LoopNest& nest) {
  for (size_t i = 0; i < box.size(); ++i) {
    Node& node = nest.nodes[i];
    node.count = box[i].count();
    if (node.variable == kNone) continue;
    Variable& bounds = nest.variables[node.variable];
    const int64_t passed = box[i].begin * node.weight;
    bounds = {bounds.write_lo - passed, bounds.write_hi - passed, bounds.valid_lo - passed,
              bounds.valid_hi - passed};
  }
}

std::optional<LoopNest> nest_of_box(const LoopNest& nest, const Box& box) {
  LoopNest part = nest;
  for (size_t i = 0; i < box.size(); ++i) {
    part.source_base += box[i].begin * nest.nodes[i].source_stride;
    part.destination_base += box[i].begin * nest.nodes[i].destination_stride;
  }
  count_passes_of(box, part);
  return finish_nest(part) ? std::optional(std::move(part)) : std::nullopt;
}

}  // namespace tilework
