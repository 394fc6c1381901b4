#include "layout/join.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "error.h"
#include "io/checked_math.h"
#include "layout/loop_nest.h"

namespace tilework {
namespace {

// A range of one axis, in padded indices of the destination or in logical indices of the plan.
struct AxisRange {
  int axis = kNone;
  int64_t lo = 0;
  int64_t hi = 0;
};

// A source piece and a destination piece that are being joined.
struct Pair {
  const std::vector<int64_t>& shape;
  const BoundSide& from;
  const BoundSide& to;
  const BoundSlice& slice;
  const BoundPiece& source;
  const BoundPiece& destination;
  AxisRange source_range;
  AxisRange destination_range;
};

// An index that both sides split into digits: one axis, or axes fused without padding between them.
struct Line {
  std::vector<int> axes;
  int64_t extent = 0;
  int64_t destination_lower = 0;
  int64_t slots = 1;
  // Source index at the first element, and its increment per element.
  int64_t source_first = 0;
  int64_t source_step = 1;
  std::vector<PlacedDigit> source;
  std::vector<PlacedDigit> destination;
};

// Axes connected by fused digits of either side.
struct Group {
  std::vector<int> axes;
  std::vector<const Dimset*> source;
  std::vector<const Dimset*> destination;
};

int find_root(std::vector<int>& parent, int axis) {
  while (parent[axis] != axis) axis = parent[axis] = parent[parent[axis]];
  return axis;
}

std::vector<Group> groups_of(const Pair& pair) {
  std::vector<int> parent(pair.shape.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto connect = [&parent](const BoundPiece& piece) {
    for (const Dimset& dimset : piece.dimsets) {
      for (int axis : dimset.axes) parent[find_root(parent, axis)] = find_root(parent, dimset.axes[0]);
    }
  };
  connect(pair.source);
  connect(pair.destination);
  std::vector<Group> groups(pair.shape.size());
  for (size_t axis = 0; axis < parent.size(); ++axis) {
    groups[find_root(parent, static_cast<int>(axis))].axes.push_back(static_cast<int>(axis));
  }
  for (const Dimset& d : pair.source.dimsets) groups[find_root(parent, d.axes[0])].source.push_back(&d);
  for (const Dimset& d : pair.destination.dimsets) {
    groups[find_root(parent, d.axes[0])].destination.push_back(&d);
  }
  std::erase_if(groups, [](const Group& group) { return group.axes.empty(); });
  return groups;
}

// --- Lines ---

// Row-major order of a group's axes in which every dimset of both sides is contiguous; none if there is no
// such order.
std::optional<std::vector<int>> common_order(const Group& group) {
  const Dimset* longest = nullptr;
  for (const auto* side : {&group.source, &group.destination}) {
    for (const Dimset* dimset : *side) {
      if (longest == nullptr || dimset->axes.size() > longest->axes.size()) longest = dimset;
    }
  }
  if (longest->axes.size() != group.axes.size()) return std::nullopt;
  const std::vector<int>& order = longest->axes;
  for (const auto* side : {&group.source, &group.destination}) {
    for (const Dimset* dimset : *side) {
      const auto run = std::search(order.begin(), order.end(), dimset->axes.begin(), dimset->axes.end());
      if (run == order.end()) return std::nullopt;
    }
  }
  return order;
}

// Inner axes must have neither padding nor rounding on this side; otherwise the line has gaps.
bool is_gapless(const std::vector<const Dimset*>& dimsets, const std::vector<int>& order,
                const BoundSide& side, const std::vector<int64_t>& shape) {
  for (size_t i = 1; i < order.size(); ++i) {
    if (side.padded[order[i]] != shape[order[i]]) return false;
  }
  for (const Dimset* dimset : dimsets) {
    if (dimset->axes.front() == order.front()) continue;
    int64_t extent = 1;
    for (int axis : dimset->axes) extent *= shape[axis];
    if (extent != dimset->slots) return false;
  }
  return true;
}

// Digits of all dimsets as digits of the line, ascending. Digits adjacent in index and memory are merged.
std::vector<PlacedDigit> line_digits(const std::vector<const Dimset*>& dimsets, const std::vector<int>& order,
                                     const std::vector<int64_t>& shape) {
  std::vector<PlacedDigit> digits;
  for (const Dimset* dimset : dimsets) {
    int64_t inner = 1;
    const auto last = std::find(order.begin(), order.end(), dimset->axes.back());
    for (auto axis = last + 1; axis != order.end(); ++axis) inner *= shape[*axis];
    for (const PlacedDigit& digit : dimset->digits) {
      digits.push_back({digit.weight * inner, digit.radix, digit.stride});
    }
  }
  std::sort(digits.begin(), digits.end(),
            [](const PlacedDigit& a, const PlacedDigit& b) { return a.weight < b.weight; });
  std::vector<PlacedDigit> merged;
  for (const PlacedDigit& digit : digits) {
    if (!merged.empty() && digit.stride == merged.back().stride * merged.back().radix) {
      merged.back().radix *= digit.radix;
    } else {
      merged.push_back(digit);
    }
  }
  return merged;
}

bool has_axis(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

bool steps_by_one(const std::vector<int>& axes, const BoundSlice& slice) {
  return std::all_of(axes.begin(), axes.end(), [&slice](int axis) { return slice.step[axis] == 1; });
}

std::optional<Line> line_of(const Group& group, const Pair& pair) {
  const auto order = common_order(group);
  if (!order) return std::nullopt;
  if (order->size() > 1) {
    if (!steps_by_one(*order, pair.slice)) return std::nullopt;
    if (has_axis(*order, pair.source_range.axis) || has_axis(*order, pair.destination_range.axis))
      return std::nullopt;
    if (!is_gapless(group.source, *order, pair.from, pair.shape)) return std::nullopt;
    if (!is_gapless(group.destination, *order, pair.to, pair.shape)) return std::nullopt;
  }
  const int first = order->front();
  int64_t inner = 1;
  for (size_t i = 1; i < order->size(); ++i) inner *= pair.shape[(*order)[i]];
  Line line;
  line.axes = *order;
  line.extent = pair.shape[first] * inner;
  line.source_first = (pair.from.lower[first] + pair.slice.start[first]) * inner;
  line.source_step = pair.slice.step[first];
  line.destination_lower = pair.to.lower[first] * inner;
  line.source = line_digits(group.source, *order, pair.shape);
  line.destination = line_digits(group.destination, *order, pair.shape);
  for (const PlacedDigit& digit : line.destination) line.slots *= digit.radix;
  return line;
}

// Source offset at a line's index. The outermost digit has no modulus, so the offset grows by one stride per
// period, also below 0 and past the last element; those offsets are never used.
int64_t line_offset(const std::vector<PlacedDigit>& digits, int64_t index) {
  int64_t offset = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    const int64_t quotient = floor_div(index, digits[i].weight);
    const bool top = i + 1 == digits.size();
    offset += (top ? quotient : quotient - floor_div(quotient, digits[i].radix) * digits[i].radix) *
              digits[i].stride;
  }
  return offset;
}

// The digit whose range of weights contains this weight.
const PlacedDigit* digit_at(const std::vector<PlacedDigit>& digits, int64_t weight) {
  const PlacedDigit* found = nullptr;
  for (const PlacedDigit& digit : digits) {
    if (digit.weight <= weight) found = &digit;
  }
  return found;
}

int64_t stride_at(const std::vector<PlacedDigit>& digits, int64_t weight) {
  const PlacedDigit* digit = digit_at(digits, weight);
  return digit == nullptr ? 0 : weight / digit->weight * digit->stride;
}

// Source index at slot `index` of the destination's line.
int64_t source_index(const Line& line, int64_t index) {
  return line.source_first + line.source_step * (index - line.destination_lower);
}

// Offsets of a line are computed for all its slots, also for holes far behind the last element. The sum over
// kMaxPlannedAxes lines stays inside 64 bits.
constexpr int64_t kMaxLineOffset = int64_t{1} << 56;

void check_reach(const Line& line) {
  const int64_t weight = line.source.empty() ? 1 : line.source.back().weight;
  const int64_t stride = line.source.empty() ? 0 : line.source.back().stride;
  int64_t reach = 0;
  int64_t offset = 0;
  bool far = __builtin_mul_overflow(std::abs(line.source_step), line.slots + line.destination_lower, &reach);
  far = far || reach > kMaxLineOffset;
  far = far || __builtin_mul_overflow((reach + line.source_first) / weight + 1, stride, &offset);
  if (!far && offset <= kMaxLineOffset) return;
  throw Error(ErrorCode::kOverflow, "The padding or the step of axis " + std::to_string(line.axes.front()) +
                                        " leads to offsets above 2^56.");
}

// A digit with the same value for all elements of the line becomes part of the base. So a slice inside one
// block has the strides of that block, wherever it starts.
int64_t take_constant_digits(Line& line) {
  const int64_t last = line.source_first + line.source_step * (line.extent - 1);
  const int64_t low = std::min(line.source_first, last);
  const int64_t high = std::max(line.source_first, last);
  int64_t base = 0;
  int64_t taken = 0;
  while (!line.source.empty()) {
    const PlacedDigit& top = line.source.back();
    const int64_t value = (low - taken) / top.weight;
    if (value != (high - taken) / top.weight) break;
    base += value * top.stride;
    taken += value * top.weight;
    line.source.pop_back();
  }
  line.source_first -= taken;
  return base;
}

// Weights of the line's index at which a digit of either side starts, if each weight divides the next. Source
// digits smaller than the step have no weight of their own.
std::optional<std::vector<int64_t>> chain_of(const Line& line) {
  const int64_t step = std::abs(line.source_step);
  std::vector<int64_t> weights;
  for (const PlacedDigit& digit : line.source) {
    if (std::max(digit.weight, step) % std::min(digit.weight, step) != 0) return std::nullopt;
    if (digit.weight >= step) weights.push_back(digit.weight / step);
  }
  for (const PlacedDigit& digit : line.destination) weights.push_back(digit.weight);
  std::erase_if(weights, [&line](int64_t weight) { return weight >= line.slots; });
  std::sort(weights.begin(), weights.end());
  weights.erase(std::unique(weights.begin(), weights.end()), weights.end());
  for (size_t i = 1; i < weights.size(); ++i) {
    if (weights[i] % weights[i - 1] != 0) return std::nullopt;
  }
  return weights;
}

int64_t top_weight(const std::vector<PlacedDigit>& digits) {
  return digits.empty() ? 1 : digits.back().weight;
}

// Steps from the first index of its source block to the start of the line; from the last index if the line
// walks backwards. Starting there, steps inside a block never carry into the next one.
int64_t steps_into_block(const Line& line) {
  const int64_t block = top_weight(line.source);
  const int64_t first = source_index(line, 0);
  const int64_t inside = first - floor_div(first, block) * block;
  return (line.source_step > 0 ? inside : block - 1 - inside) / std::abs(line.source_step);
}

Node line_node(const Line& line, const std::vector<int64_t>& weights, size_t i, int variable) {
  Node node;
  node.weight = weights[i];
  node.count = i + 1 < weights.size() ? weights[i + 1] / weights[i] : ceil_div(line.slots, weights[i]);
  node.destination_stride = stride_at(line.destination, weights[i]);
  node.variable = variable;
  node.axes = line.axes;
  return node;
}

// Loops with fixed strides on both sides.
void add_chain(const Line& line, const std::vector<int64_t>& weights, int variable, LoopNest& nest) {
  const int64_t step = std::abs(line.source_step);
  for (size_t i = 0; i < weights.size(); ++i) {
    Node node = line_node(line, weights, i, variable);
    node.source_stride = stride_at(line.source, weights[i] * step) * (line.source_step < 0 ? -1 : 1);
    nest.nodes.push_back(std::move(node));
  }
  nest.source_base += line_offset(line.source, source_index(line, 0));
}

// Loops with fixed strides above the common period of both sides, and a lookup below it.
void add_periodic(const Line& line, int variable, LoopNest& nest) {
  const int64_t source_top = top_weight(line.source);
  const int64_t source_period = source_top / std::gcd(source_top, line.source_step);
  std::vector<int64_t> weights;
  for (const PlacedDigit& digit : line.destination) weights.push_back(digit.weight);
  if (weights.empty()) weights.push_back(1);
  int64_t period = line.slots;
  const auto multiple = std::find_if(weights.begin(), weights.end(),
                                     [source_period](int64_t weight) { return weight % source_period == 0; });
  if (multiple != weights.end()) {
    period = *multiple;
  } else {
    const int64_t step = source_period / std::gcd(weights.back(), source_period);
    if (step < ceil_div(line.slots, weights.back())) weights.push_back(period = weights.back() * step);
  }
  const int lookup = static_cast<int>(nest.lookups.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    Node node = line_node(line, weights, i, variable);
    if (weights[i] < period) {
      node.lookup = lookup;
      node.lookup_stride = weights[i];
    } else {
      node.source_stride = weights[i] * line.source_step / source_top * line.source.back().stride;
    }
    nest.nodes.push_back(std::move(node));
  }
  nest.lookups.push_back(make_lookup(
      period, [line](int64_t index) { return line_offset(line.source, source_index(line, index)); }));
}

// Weights of a line that starts at a source block. A line that starts inside a block is extended to the start
// of the block if the destination has a single digit; the added slots are never written.
std::optional<std::vector<int64_t>> chain_at_block(Line& line, Variable& bounds, LoopNest& nest) {
  const int64_t before = steps_into_block(line);
  if (before == 0) return chain_of(line);
  if (line.destination.size() != 1) return std::nullopt;
  Line earlier = line;
  earlier.destination_lower += before;
  earlier.slots += before;
  auto chain = chain_of(earlier);
  // Loops with steps wider than the axis would not write in destination order.
  if (!chain || (!chain->empty() && chain->back() >= line.slots)) return std::nullopt;
  line = std::move(earlier);
  bounds = {bounds.write_lo + before, bounds.write_hi + before, bounds.valid_lo + before,
            bounds.valid_hi + before};
  nest.destination_base -= before * line.destination.front().stride;
  return chain;
}

void add_line(Line line, const Pair& pair, LoopNest& nest) {
  nest.source_base += take_constant_digits(line);
  check_reach(line);
  const int variable = static_cast<int>(nest.variables.size());
  const int64_t lower = line.destination_lower;
  Variable bounds{0, line.slots, lower, lower + line.extent};
  if (has_axis(line.axes, pair.destination_range.axis)) {
    bounds.write_lo = pair.destination_range.lo;
    bounds.write_hi = std::min(bounds.write_hi, pair.destination_range.hi);
  }
  if (has_axis(line.axes, pair.source_range.axis)) {
    bounds.write_lo = std::max(bounds.write_lo, pair.source_range.lo + lower);
    bounds.write_hi = std::min(bounds.write_hi, pair.source_range.hi + lower);
  }
  const auto chain = chain_at_block(line, bounds, nest);
  nest.variables.push_back(bounds);
  if (chain) {
    add_chain(line, *chain, variable, nest);
  } else {
    add_periodic(line, variable, nest);
  }
}

// --- Fused axes with padding or rounding between them ---

// Computes the source offset of a destination slot of a group by arithmetic.
class GroupOffset {
 public:
  GroupOffset(const Group& group, const Pair& pair)
      : shape_(pair.shape),
        from_first_(pair.from.lower),
        from_step_(pair.slice.step),
        from_padded_(pair.from.padded),
        to_lower_(pair.to.lower),
        to_padded_(pair.to.padded),
        range_(pair.source_range) {
    for (const Dimset* dimset : group.source) source_.push_back(*dimset);
    for (const Dimset* dimset : group.destination) destination_.push_back(*dimset);
    for (size_t axis = 0; axis < from_first_.size(); ++axis) from_first_[axis] += pair.slice.start[axis];
    is_limited_ = has_axis(group.axes, range_.axis);
  }

  // `index` is row-major over the slots of the destination's dimsets.
  int64_t operator()(int64_t index) const {
    Coordinate logical;
    for (size_t i = destination_.size(); i-- > 0;) {
      const Dimset& dimset = destination_[i];
      if (!decode(dimset, index % dimset.slots, logical)) return kHole;
      index /= dimset.slots;
    }
    if (is_limited_ && (logical[range_.axis] < range_.lo || logical[range_.axis] >= range_.hi)) return kSkip;
    int64_t offset = 0;
    for (const Dimset& dimset : source_) {
      int64_t t = 0;
      for (int axis : dimset.axes) {
        t = t * from_padded_[axis] + from_first_[axis] + from_step_[axis] * logical[axis];
      }
      for (const PlacedDigit& digit : dimset.digits) offset += t / digit.weight % digit.radix * digit.stride;
    }
    return offset;
  }

 private:
  // Only the axes of the group are set and read.
  using Coordinate = std::array<int64_t, kMaxPlannedAxes>;

  // False for a slot without an element.
  bool decode(const Dimset& dimset, int64_t index, Coordinate& logical) const {
    for (size_t i = dimset.axes.size(); i-- > 0;) {
      const int axis = dimset.axes[i];
      logical[axis] = index % to_padded_[axis] - to_lower_[axis];
      index /= to_padded_[axis];
      if (logical[axis] < 0 || logical[axis] >= shape_[axis]) return false;
    }
    return index == 0;
  }

  std::vector<int64_t> shape_;
  std::vector<int64_t> from_first_;
  std::vector<int64_t> from_step_;
  std::vector<int64_t> from_padded_;
  std::vector<int64_t> to_lower_;
  std::vector<int64_t> to_padded_;
  AxisRange range_;
  bool is_limited_ = false;
  std::vector<Dimset> source_;
  std::vector<Dimset> destination_;
};

void add_group(const Group& group, const Pair& pair, LoopNest& nest) {
  const int lookup = static_cast<int>(nest.lookups.size());
  int64_t inner = 1;
  for (size_t i = group.destination.size(); i-- > 0;) {
    const Dimset& dimset = *group.destination[i];
    Variable bounds{0, dimset.slots, 0, dimset.slots};
    if (dimset.axes.front() == pair.destination_range.axis) {
      bounds.write_lo = pair.destination_range.lo;
      bounds.write_hi = std::min(bounds.write_hi, pair.destination_range.hi);
    }
    for (const PlacedDigit& digit : dimset.digits) {
      Node node;
      node.count = digit.radix;
      node.destination_stride = digit.stride;
      node.variable = static_cast<int>(nest.variables.size());
      node.weight = digit.weight;
      node.lookup = lookup;
      node.lookup_stride = digit.weight * inner;
      node.axes = dimset.axes;
      nest.nodes.push_back(std::move(node));
    }
    nest.variables.push_back(bounds);
    inner *= dimset.slots;
  }
  nest.lookups.push_back(make_lookup(inner, GroupOffset(group, pair)));
}

// --- Pieces ---

// Every destination slot must fall into one range, so the first and the last range extend beyond the
// elements.
AxisRange source_range_of(const BoundSide& from, const BoundSlice& slice, size_t i) {
  if (from.pieces.size() == 1) return {};
  const BoundPiece& piece = from.pieces[i];
  const int64_t first = from.lower[piece.axis] + slice.start[piece.axis];
  const int64_t step = slice.step[piece.axis];
  // Plan index at which the source index reaches `bound`.
  const auto index_at = [first, step](int64_t bound) {
    const int64_t index = step > 0 ? ceil_div(bound - first, step) : floor_div(first - bound, -step) + 1;
    return std::clamp(index, -kMaxSafeInteger, kMaxSafeInteger);
  };
  const bool is_lowest = i == 0;
  const bool is_highest = i + 1 == from.pieces.size();
  AxisRange range{piece.axis, -kMaxSafeInteger, kMaxSafeInteger};
  int64_t& at_low_end = step > 0 ? range.lo : range.hi;
  int64_t& at_high_end = step > 0 ? range.hi : range.lo;
  if (!is_lowest) at_low_end = index_at(piece.lo);
  if (!is_highest) at_high_end = index_at(piece.hi);
  return range;
}

AxisRange destination_range_of(const BoundSide& to, size_t i) {
  if (to.pieces.size() == 1) return {};
  return {to.pieces[i].axis, to.pieces[i].lo, to.pieces[i].hi};
}

LoopNest join_pair(const Pair& pair) {
  LoopNest nest;
  for (const Group& group : groups_of(pair)) {
    if (const auto line = line_of(group, pair)) {
      add_line(*line, pair, nest);
    } else {
      add_group(group, pair, nest);
    }
  }
  return nest;
}

}  // namespace

std::vector<LoopNest> join(const std::vector<int64_t>& shape, const BoundSide& from, const BoundSide& to,
                           const BoundSlice& slice) {
  std::vector<LoopNest> nests;
  if (to.elements == 0) return nests;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    nests.push_back(zero_nest(to.elements));
    return nests;
  }
  for (size_t s = 0; s < from.pieces.size(); ++s) {
    for (size_t d = 0; d < to.pieces.size(); ++d) {
      const Pair pair{shape,
                      from,
                      to,
                      slice,
                      from.pieces[s],
                      to.pieces[d],
                      source_range_of(from, slice, s),
                      destination_range_of(to, d)};
      LoopNest nest = join_pair(pair);
      if (finish_nest(nest)) nests.push_back(std::move(nest));
    }
  }
  return nests;
}

}  // namespace tilework
