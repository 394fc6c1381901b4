#include "reorder/source_ranges.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "io/checked_math.h"
#include "reorder/boxes.h"
#include "reorder/fused_cast.h"

namespace tilework {
namespace {

// Elements [begin, end) of the source.
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;
};

// Offsets without a table that are computed for one nest. Beyond it, all of the source counts as read: the
// caller then asks for a smaller range of the destination.
constexpr int64_t kMaxLookups = 65536;
// Parts of tails that are told apart; a tensor has one or two tails, each of two parts.
constexpr size_t kMaxTailBoxes = 256;
// Steps towards fewer ranges.
constexpr int64_t kGapGrowth = 8;
constexpr int64_t kWidestGap = int64_t{1} << 60;

// Sorts the intervals and joins what is no further apart than `gap`.
void merge(std::vector<Interval>& intervals, int64_t gap) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  size_t count = 0;
  for (const Interval& interval : intervals) {
    if (count > 0 && interval.begin - intervals[count - 1].end <= gap) {
      intervals[count - 1].end = std::max(intervals[count - 1].end, interval.end);
    } else {
      intervals[count++] = interval;
    }
  }
  intervals.resize(count);
}

// Collects the source elements of one nest for destination elements [begin, end).
class Collector {
 public:
  Collector(const LoopNest& nest, int64_t begin, int64_t end, int64_t gap)
      : nest_(nest),
        begin_(begin),
        end_(end),
        gap_(gap),
        index_(nest.variables.size(), 0),
        lookup_index_(nest.lookups.size(), 0) {}

  // False where there are too many ranges for this gap.
  bool collect(std::vector<Interval>& found) {
    if (!nest_.all_zero) descend(0, nest_.source_base, nest_.destination_base);
    merge(found_, gap_);
    found.insert(found.end(), found_.begin(), found_.end());
    return !too_many_;
  }

 private:
  // Passes of a loop that may have a source and reach into the destination's range.
  Passes passes_of(const Node& node, int64_t d) const {
    Passes passes{0, node.count};
    if (node.variable != kNone) {
      const Passes index = valid_index(node.variable);
      passes.begin = std::max(passes.begin, ceil_div(index.begin - node.below, node.weight));
      passes.end = std::min(passes.end, ceil_div(index.end, node.weight));
    }
    passes.begin = std::max(passes.begin, floor_div(begin_ - d - node.span, node.destination_stride) + 1);
    passes.end = std::min(passes.end, ceil_div(end_ - d, node.destination_stride));
    return passes;
  }

  // What the loops that are left may add to a variable.
  Passes valid_index(int variable) const {
    const Variable& bounds = nest_.variables[variable];
    const int64_t s = index_[variable];
    return {std::max(bounds.write_lo, bounds.valid_lo) - s, std::min(bounds.write_hi, bounds.valid_hi) - s};
  }

  // Passes that lie inside the range are one box; the first and the last one may be cut and are looked into.
  void descend(size_t level, int64_t s, int64_t d) {
    if (level == nest_.nodes.size()) {
      add({s, s + 1});
      return;
    }
    const Node& node = nest_.nodes[level];
    const Passes passes = passes_of(node, d);
    const int64_t stride = node.destination_stride;
    const Passes whole{
        std::clamp(ceil_div(begin_ - d, stride), passes.begin, std::max(passes.begin, passes.end)),
        std::min(passes.end, floor_div(end_ - d - node.span, stride) + 1)};
    for (int64_t i = passes.begin; i < std::min(whole.begin, passes.end); ++i) enter(level, i, s, d);
    if (whole.begin < whole.end) take_box(level, whole, s);
    for (int64_t i = std::max(whole.begin, whole.end); i < passes.end; ++i) enter(level, i, s, d);
  }

  void enter(size_t level, int64_t i, int64_t s, int64_t d) {
    const Node& node = nest_.nodes[level];
    if (node.variable != kNone) index_[node.variable] += i * node.weight;
    if (node.lookup != kNone) lookup_index_[node.lookup] += i * node.lookup_stride;
    const int64_t offset = node.looks_up ? nest_.lookups[node.lookup].at(lookup_index_[node.lookup]) : 0;
    if (offset != kHole && offset != kSkip) {
      descend(level + 1, s + i * node.source_stride + offset, d + i * node.destination_stride);
    }
    if (node.variable != kNone) index_[node.variable] -= i * node.weight;
    if (node.lookup != kNone) lookup_index_[node.lookup] -= i * node.lookup_stride;
  }

  // ---- Boxes: some passes of one loop, all of the deeper ones but for the tails of variables

  void take_box(size_t level, Passes passes, int64_t s) {
    Box box(nest_.nodes.size(), Passes{0, 1});
    for (size_t i = level; i < box.size(); ++i)
      box[i] = i == level ? passes : Passes{0, nest_.nodes[i].count};
    std::vector<Box> boxes = {std::move(box)};
    for (size_t variable = 0; variable < nest_.variables.size(); ++variable) {
      boxes = without_holes(boxes, static_cast<int>(variable));
    }
    for (const Box& part : boxes) add_box(level, part, s);
  }

  // The parts of boxes that have a source as far as the variable is concerned.
  std::vector<Box> without_holes(const std::vector<Box>& boxes, int variable) const {
    std::vector<Box> parts;
    for (const Box& box : boxes) {
      for (Box& part : parts_within(nest_, box, variable, valid_index(variable)))
        parts.push_back(std::move(part));
    }
    // Too many to tell apart: the holes of this variable count as read.
    return parts.size() > kMaxTailBoxes ? boxes : parts;
  }

  void add_box(size_t level, const Box& box, int64_t s) {
    std::vector<Interval> offsets = {{s, s + 1}};
    std::vector<std::pair<int64_t, int64_t>> steps;
    for (size_t i = level; i < box.size(); ++i) {
      const Node& node = nest_.nodes[i];
      const int64_t passes = box[i].count();
      if (node.lookup != kNone) continue;
      const int64_t first = box[i].begin * node.source_stride;
      const int64_t last = (box[i].end - 1) * node.source_stride;
      offsets[0].begin += std::min(first, last);
      if (passes > 1 && node.source_stride != 0) steps.emplace_back(std::abs(node.source_stride), passes);
    }
    offsets[0].end = offsets[0].begin + 1;
    std::sort(steps.begin(), steps.end());
    add_steps_and_lookups(level, box, std::move(offsets), steps);
  }

  // Small lookups first, as they widen the run that the steps then repeat; wide ones when the steps that
  // leave no gaps have grown it.
  void add_steps_and_lookups(size_t level, const Box& box, std::vector<Interval> offsets,
                             const std::vector<std::pair<int64_t, int64_t>>& steps) {
    std::vector<std::vector<Interval>> wide;
    for (size_t lookup = 0; lookup < nest_.lookups.size(); ++lookup) {
      std::vector<Interval> answers = answers_of(static_cast<int>(lookup), level, box);
      if (answers.empty()) return;
      if (answers.size() == 1) {
        offsets = sums(offsets, answers);
      } else {
        wide.push_back(std::move(answers));
      }
    }
    size_t at = 0;
    while (at < steps.size() && leaves_no_gap(offsets, steps[at].first)) repeat(offsets, steps[at++]);
    for (const auto& answers : wide) offsets = sums(offsets, answers);
    for (; at < steps.size() && !too_many_; ++at) repeat(offsets, steps[at]);
    for (const Interval& offset : offsets) add(offset);
  }

  bool leaves_no_gap(const std::vector<Interval>& offsets, int64_t step) const {
    return offsets.size() == 1 && step - (offsets[0].end - offsets[0].begin) <= gap_;
  }

  void repeat(std::vector<Interval>& offsets, std::pair<int64_t, int64_t> step_and_passes) {
    const auto [step, passes] = step_and_passes;
    if (leaves_no_gap(offsets, step)) {
      offsets[0].end += (passes - 1) * step;
      return;
    }
    if (passes > static_cast<int64_t>(kMaxSourceRanges / offsets.size())) {
      too_many_ = true;
      return;
    }
    const size_t count = offsets.size();
    for (int64_t i = 1; i < passes; ++i) {
      for (size_t k = 0; k < count; ++k)
        offsets.push_back({offsets[k].begin + i * step, offsets[k].end + i * step});
    }
    merge(offsets, gap_);
  }

  std::vector<Interval> sums(const std::vector<Interval>& a, const std::vector<Interval>& b) {
    std::vector<Interval> result;
    if (a.size() > kMaxSourceRanges / b.size()) {
      too_many_ = true;
      return a;
    }
    // The last element of a sum is the sum of the last elements.
    for (const Interval& x : a) {
      for (const Interval& y : b) result.push_back({x.begin + y.begin, x.end + y.end - 1});
    }
    merge(result, gap_);
    return result;
  }

  // The offsets that a lookup gives for the loops that are left; {0, 1} where it was answered outside.
  std::vector<Interval> answers_of(int lookup, size_t level, const Box& box) {
    std::vector<int64_t> indices = {lookup_index_[lookup]};
    bool answered = true;
    const bool computed = nest_.lookups[lookup].table.empty();
    for (size_t i = level; i < box.size(); ++i) {
      const Node& node = nest_.nodes[i];
      if (node.lookup != lookup) continue;
      answered = false;
      const size_t count = indices.size();
      const int64_t passes = box[i].count();
      if (computed && passes > (kMaxLookups - computed_) / static_cast<int64_t>(count)) return {kEverywhere};
      for (size_t k = 0; k < count; ++k) indices[k] += box[i].begin * node.lookup_stride;
      for (int64_t pass = 1; pass < passes; ++pass) {
        for (size_t k = 0; k < count; ++k) indices.push_back(indices[k] + pass * node.lookup_stride);
      }
    }
    if (answered) return {{0, 1}};
    if (computed) computed_ += static_cast<int64_t>(indices.size());
    std::vector<Interval> answers;
    for (int64_t index : indices) {
      const int64_t offset = nest_.lookups[lookup].at(index);
      if (offset != kHole && offset != kSkip) answers.push_back({offset, offset + 1});
    }
    merge(answers, gap_);
    return answers;
  }

  void add(Interval interval) {
    if (too_many_) return;
    found_.push_back(interval);
    if (found_.size() <= 2 * kMaxSourceRanges) return;
    merge(found_, gap_);
    too_many_ = found_.size() > kMaxSourceRanges;
  }

  // Cut to the source at the end.
  static constexpr Interval kEverywhere{-kMaxSafeInteger, kMaxSafeInteger};

  const LoopNest& nest_;
  int64_t begin_;
  int64_t end_;
  int64_t gap_;
  std::vector<int64_t> index_;
  std::vector<int64_t> lookup_index_;
  std::vector<Interval> found_;
  int64_t computed_ = 0;
  bool too_many_ = false;
};

bool collect(const ReorderPlan& plan, Interval destination, int64_t gap, std::vector<Interval>& found) {
  for (const LoopNest& nest : plan.nests()) {
    if (!Collector(nest, destination.begin, destination.end, gap).collect(found)) return false;
  }
  for (Interval& interval : found) {
    interval.begin = std::max<int64_t>(interval.begin, 0);
    interval.end = std::min(interval.end, plan.source_elements());
  }
  std::erase_if(found, [](const Interval& interval) { return interval.begin >= interval.end; });
  merge(found, gap);
  return found.size() <= kMaxSourceRanges;
}

}  // namespace

std::vector<ByteRange> source_ranges(const ReorderPlan& plan, int64_t begin, int64_t end, int64_t gap) {
  std::vector<ByteRange> ranges;
  if (begin >= end) return ranges;
  if (const FusedCast* cast = plan.cast()) {
    return source_ranges(cast->moves(), cast->moved_bytes(begin), cast->moved_bytes(end), gap);
  }
  const int bits = plan.element_bits();
  const Interval destination{begin * 8 / bits, std::min(end * 8 / bits, plan.destination_elements())};
  std::vector<Interval> found;
  for (int64_t elements = gap * 8 / bits; !collect(plan, destination, elements, found);
       elements = std::min((elements + 1) * kGapGrowth, kWidestGap)) {
    found.clear();
  }
  for (Interval& interval : found) interval = {interval.begin * bits / 8, ceil_div(interval.end * bits, 8)};
  merge(found, gap);
  for (const Interval& interval : found) ranges.push_back({interval.begin, interval.end});
  return ranges;
}

}  // namespace tilework
