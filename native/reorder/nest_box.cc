#include "reorder/nest_box.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "io/checked_math.h"

namespace tilework {
namespace {

// No table entry is farther from its box's first element; sums of two stay inside 32 bits.
constexpr int64_t kMaxReach = int64_t{1} << 29;

// Tables of cut loops. Loops are cut at a line of either side and where the box is full.
constexpr int64_t kMostCuts = 3;

int64_t most_elements(const LoopNest& nest, int64_t most) {
  std::vector<bool> variables(nest.variables.size());
  std::vector<bool> lookups(nest.lookups.size());
  for (const Node& node : nest.nodes) {
    if (node.variable != kNone) variables[static_cast<size_t>(node.variable)] = true;
    if (node.lookup != kNone) lookups[static_cast<size_t>(node.lookup)] = true;
  }
  const int64_t indices =
      std::count(variables.begin(), variables.end(), true) + std::count(lookups.begin(), lookups.end(), true);
  const int64_t entry = int64_t{sizeof(int32_t)} * (2 + indices + kMostCuts);
  return std::min(most, std::max<int64_t>(kMaxBoxTableBytes / entry, 1));
}

// Grows the passes of a box: what makes whole cache lines on both sides first.
class BoxShape {
 public:
  BoxShape(const LoopNest& nest, BoxLimits limits, int64_t source_elements)
      : nest_(nest),
        line_(limits.line),
        most_(most_elements(nest, limits.most)),
        // Answers of lookups may lie anywhere in the source; where that is too far for a table of 32 bits,
        // a box has one answer.
        is_near_(source_elements <= std::numeric_limits<int32_t>::max()),
        passes_(nest.nodes.size(), 1) {}

  std::vector<int64_t> choose() {
    take_lookups();
    take_line(by_destination());
    take_line(by_source());
    for (size_t level : by_destination()) grow(level, most_ / elements() * passes_[level]);
    return passes_;
  }

 private:
  int64_t elements() const {
    return std::accumulate(passes_.begin(), passes_.end(), int64_t{1}, std::multiplies<>());
  }

  std::vector<size_t> by_destination() const {
    std::vector<size_t> levels(passes_.size());
    std::iota(levels.rbegin(), levels.rend(), size_t{0});
    return levels;
  }

  std::vector<size_t> by_source() const {
    std::vector<size_t> levels = by_destination();
    const auto distance = [this](size_t level) {
      const Node& node = nest_.nodes[level];
      return node.lookup == kNone ? std::abs(node.source_stride) : 1;
    };
    std::stable_sort(levels.begin(), levels.end(),
                     [&](size_t a, size_t b) { return distance(a) < distance(b); });
    return levels;
  }

  // With all of its loops in the box, a lookup has the same answers in every box.
  void take_lookups() {
    for (size_t lookup = 0; lookup < nest_.lookups.size(); ++lookup) {
      int64_t answers = 1;
      for (const Node& node : nest_.nodes) {
        if (node.lookup == static_cast<int>(lookup) && answers <= most_) answers *= node.count;
      }
      if (answers * elements() * line_ > most_) continue;
      for (size_t level = 0; level < passes_.size(); ++level) {
        if (nest_.nodes[level].lookup == static_cast<int>(lookup)) grow(level, nest_.nodes[level].count);
      }
    }
  }

  void take_line(const std::vector<size_t>& levels) {
    int64_t taken = 1;
    for (size_t level : levels) {
      const int64_t room = most_ / elements() * passes_[level];
      grow(level, std::min(room, ceil_div(line_, taken)));
      taken *= passes_[level];
      if (taken >= line_ || passes_[level] < nest_.nodes[level].count) return;
    }
  }

  // To at most `most` passes; an even share where that is less than two boxes, else a power of two.
  void grow(size_t level, int64_t most) {
    const Node& node = nest_.nodes[level];
    if (node.lookup != kNone && !is_near_) return;
    const int64_t step = std::max({std::abs(node.source_stride), node.destination_stride, node.weight,
                                   node.lookup == kNone ? 1 : node.lookup_stride});
    most = std::min(most, (kMaxReach - reach_) / step);
    int64_t wanted = node.count;
    if (most < node.count) {
      const int64_t share = ceil_div(node.count, 2);
      wanted = share <= most ? share : 1;
      while (wanted * 2 <= most) wanted *= 2;
    }
    if (wanted <= passes_[level]) return;
    reach_ += (wanted - passes_[level]) * step;
    passes_[level] = wanted;
  }

  const LoopNest& nest_;
  int64_t line_;
  int64_t most_;
  bool is_near_;
  // At least as far as any table entry.
  int64_t reach_ = 0;
  std::vector<int64_t> passes_;
};

// What the passes of the box's loops add, in the order of the destination; step(node, level) is what one pass
// of a loop adds.
template <class Step>
std::vector<int32_t> table_of(const LoopNest& nest, const std::vector<int64_t>& passes, Step step) {
  std::vector<int32_t> table = {0};
  for (size_t level = 0; level < passes.size(); ++level) {
    const auto stride = static_cast<int32_t>(passes[level] > 1 ? step(nest.nodes[level], level) : 0);
    std::vector<int32_t> deeper;
    deeper.reserve(table.size() * static_cast<size_t>(passes[level]));
    for (int32_t first : table) {
      for (int32_t i = 0; i < passes[level]; ++i) deeper.push_back(first + i * stride);
    }
    table = std::move(deeper);
  }
  return table;
}

}  // namespace

NestBox::NestBox(const LoopNest& nest, BoxLimits limits, int64_t source_elements)
    : passes(BoxShape(nest, limits, source_elements).choose()) {
  list_indices(nest);
  fill(nest);
  set_order(nest);
}

void NestBox::list_indices(const LoopNest& nest) {
  for (size_t i = 0; i < nest.variables.size(); ++i) {
    const int variable = static_cast<int>(i);
    const bool is_used = std::any_of(nest.nodes.begin(), nest.nodes.end(),
                                     [=](const Node& node) { return node.variable == variable; });
    if (is_used) indices.push_back({variable, kNone, {}, 0});
  }
  for (size_t level = 0; level < passes.size(); ++level) {
    const bool is_cut = nest.nodes[level].count % passes[level] != 0;
    if (is_cut) indices.push_back({kNone, static_cast<int>(level), {}, 0});
  }
}

void NestBox::fill(const LoopNest& nest) {
  destination = table_of(nest, passes, [](const Node& node, size_t) { return node.destination_stride; });
  source = table_of(nest, passes, [](const Node& node, size_t) { return node.source_stride; });
  for (BoxIndex& index : indices) {
    index.added = table_of(nest, passes, [&index](const Node& node, size_t level) {
      if (index.level != kNone) return static_cast<int64_t>(static_cast<int>(level) == index.level);
      return node.variable == index.variable ? node.weight : 0;
    });
    index.most = *std::max_element(index.added.begin(), index.added.end());
  }
  for (size_t i = 0; i < nest.lookups.size(); ++i) {
    const bool is_used = std::any_of(nest.nodes.begin(), nest.nodes.end(),
                                     [i](const Node& node) { return node.lookup == static_cast<int>(i); });
    // The answer of a lookup without loops is a part of the nest's base.
    if (!is_used) {
      lookups.emplace_back();
      continue;
    }
    lookups.push_back(table_of(nest, passes, [i](const Node& node, size_t) {
      return node.lookup == static_cast<int>(i) ? node.lookup_stride : 0;
    }));
  }
}

void NestBox::set_order(const LoopNest& nest) {
  const auto changes_state = [&](size_t level) {
    const Node& node = nest.nodes[level];
    return node.variable != kNone || node.lookup != kNone || node.count % passes[level] != 0;
  };
  for (size_t level = 0; level < passes.size(); ++level) {
    if (passes[level] < nest.nodes[level].count) order.push_back(level);
  }
  stateful =
      static_cast<size_t>(std::stable_partition(order.begin(), order.end(), changes_state) - order.begin());
}

int64_t NestBox::bytes() const {
  size_t words = destination.size() + source.size();
  for (const BoxIndex& index : indices) words += index.added.size();
  for (const std::vector<int32_t>& lookup : lookups) words += lookup.size();
  return static_cast<int64_t>(words * sizeof(int32_t));
}

BoxPlace::BoxPlace(const LoopNest& nest, const NestBox& box)
    : nest_(nest),
      box_(box),
      index_(nest.variables.size()),
      lookup_index_(nest.lookups.size()),
      passes_(box.passes) {}

void BoxPlace::enter(size_t level, int64_t pass) {
  const Node& node = nest_.nodes[level];
  if (node.variable != kNone) index_[static_cast<size_t>(node.variable)] += pass * node.weight;
  if (node.lookup != kNone) lookup_index_[static_cast<size_t>(node.lookup)] += pass * node.lookup_stride;
  passes_[level] = std::min(box_.passes[level], node.count - pass);
}

void BoxPlace::leave(size_t level, int64_t pass) {
  const Node& node = nest_.nodes[level];
  if (node.variable != kNone) index_[static_cast<size_t>(node.variable)] -= pass * node.weight;
  if (node.lookup != kNone) lookup_index_[static_cast<size_t>(node.lookup)] -= pass * node.lookup_stride;
}

void BoxPlace::get_state(BoxState& state) const {
  state.bounds.clear();
  for (const BoxIndex& index : box_.indices) state.bounds.push_back(bounds_of(index));
  state.lookups = lookup_index_;
}

BoxState::Bounds BoxPlace::bounds_of(const BoxIndex& index) const {
  if (index.level != kNone) {
    const int64_t passes = passes_[static_cast<size_t>(index.level)];
    return {0, passes, 0, passes};
  }
  const Variable& variable = nest_.variables[static_cast<size_t>(index.variable)];
  const int64_t taken = index_[static_cast<size_t>(index.variable)];
  const auto inside = [&](int64_t bound) { return std::clamp(bound - taken, int64_t{0}, index.most + 1); };
  return {inside(variable.write_lo), inside(variable.write_hi), inside(variable.valid_lo),
          inside(variable.valid_hi)};
}

namespace {

// Steps of the walk that looks for states: there may be many boxes before a new one.
constexpr int kMostSteps = 256;

void add_states(const LoopNest& nest, const NestBox& box, BoxPlace& place, size_t at, size_t most, int& steps,
                std::vector<BoxState>& states) {
  if (at == box.stateful) {
    BoxState state;
    place.get_state(state);
    if (std::find(states.begin(), states.end(), state) == states.end()) states.push_back(std::move(state));
    return;
  }
  const size_t level = box.order[at];
  for (int64_t pass = 0; pass < nest.nodes[level].count; pass += box.passes[level]) {
    if (states.size() == most || ++steps > kMostSteps) return;
    place.enter(level, pass);
    add_states(nest, box, place, at + 1, most, steps, states);
    place.leave(level, pass);
  }
}

}  // namespace

std::vector<BoxState> first_states(const LoopNest& nest, const NestBox& box, size_t most) {
  std::vector<BoxState> states;
  BoxPlace place(nest, box);
  int steps = 0;
  add_states(nest, box, place, 0, most, steps, states);
  return states;
}

BoxState state_of_full(const NestBox& box) {
  BoxState state;
  for (const BoxIndex& index : box.indices) state.bounds.push_back({0, index.most + 1, 0, index.most + 1});
  state.lookups.assign(box.lookups.size(), 0);
  return state;
}

namespace {

bool looks_up(const NestBox& box) {
  return std::any_of(box.lookups.begin(), box.lookups.end(),
                     [](const std::vector<int32_t>& lookup) { return !lookup.empty(); });
}

}  // namespace

bool is_full(const LoopNest& nest, const NestBox& box, const BoxState& state) {
  return !nest.all_zero && !looks_up(box) && state.bounds == state_of_full(box).bounds;
}

bool has_all_of(const LoopNest& nest, const NestBox& box, int variable) {
  for (size_t level = 0; level < box.passes.size(); ++level) {
    const Node& node = nest.nodes[level];
    if (node.variable == variable && box.passes[level] < node.count) return false;
  }
  return true;
}

BoxState state_of_uncut(const LoopNest& nest, const NestBox& box) {
  BoxState uncut = state_of_full(box);
  BoxState first;
  BoxPlace(nest, box).get_state(first);
  for (size_t i = 0; i < box.indices.size(); ++i) {
    const int variable = box.indices[i].variable;
    if (variable != kNone && has_all_of(nest, box, variable)) uncut.bounds[i] = first.bounds[i];
  }
  return uncut;
}

bool is_uncut(const LoopNest& nest, const NestBox& box, const BoxState& state) {
  return !nest.all_zero && !looks_up(box) && state.bounds == state_of_uncut(nest, box).bounds;
}

void BoxMoves::mark(const LoopNest& nest, const NestBox& box, const BoxState& state) {
  elements.assign(static_cast<size_t>(box.elements()),
                  nest.all_zero ? BoxElement::kZero : BoxElement::kMoved);
  for (size_t i = 0; i < box.indices.size(); ++i) {
    const BoxIndex& index = box.indices[i];
    const BoxState::Bounds& bounds = state.bounds[i];
    const BoxState::Bounds all{0, index.most + 1, 0, index.most + 1};
    if (bounds == all) continue;
    for (size_t k = 0; k < elements.size(); ++k) {
      const int32_t at = index.added[k];
      const bool is_valid = at >= bounds.valid_lo && at < bounds.valid_hi;
      const bool is_written = at >= bounds.write_lo && at < bounds.write_hi;
      const BoxElement element = !is_written ? BoxElement::kKept
                                 : !is_valid ? BoxElement::kZero
                                             : BoxElement::kMoved;
      elements[k] = std::max(elements[k], element);
    }
  }
}

// Also what the answers of lookups mark.
std::vector<int64_t> BoxMoves::source_offsets(const LoopNest& nest, const NestBox& box,
                                              const BoxState& state) {
  std::vector<int64_t> offsets(box.source.begin(), box.source.end());
  for (size_t i = 0; i < nest.lookups.size(); ++i) {
    const Lookup& lookup = nest.lookups[i];
    if (box.lookups[i].empty()) continue;
    for (size_t k = 0; k < offsets.size(); ++k) {
      if (elements[k] != BoxElement::kMoved) continue;
      const int64_t offset = lookup.at(state.lookups[i] + box.lookups[i][k]);
      if (offset == kSkip || offset == kHole) {
        elements[k] = offset == kSkip ? BoxElement::kKept : BoxElement::kZero;
      } else {
        offsets[k] += offset;
      }
    }
  }
  return offsets;
}

void BoxMoves::list(const LoopNest& nest, const NestBox& box, const BoxState& state) {
  mark(nest, box, state);
  const std::vector<int64_t> offsets = source_offsets(nest, box, state);
  destination.clear();
  source.clear();
  zeros.clear();
  for (size_t k = 0; k < elements.size(); ++k) {
    const int32_t at = box.destination[k];
    if (elements[k] == BoxElement::kMoved) {
      if (destination.empty()) source_base = offsets[k];
      destination.push_back(at);
      source.push_back(static_cast<int32_t>(offsets[k] - source_base));
    } else if (elements[k] == BoxElement::kZero) {
      const bool goes_on = !zeros.empty() && zeros.back().destination + zeros.back().count == at;
      if (goes_on) {
        ++zeros.back().count;
      } else {
        zeros.push_back({at, 1});
      }
    }
  }
}

}  // namespace tilework
