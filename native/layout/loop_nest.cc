#include "layout/loop_nest.h"

#include <algorithm>
#include <utility>

#include "policy/thresholds.h"

namespace tilework {
namespace {

std::vector<int64_t> reaches(const LoopNest& nest) {
  std::vector<int64_t> reach(nest.variables.size(), 1);
  for (const Node& node : nest.nodes) {
    if (node.variable != kNone) reach[node.variable] += (node.count - 1) * node.weight;
  }
  return reach;
}

// A loop needs no variable if every iteration is written and has a source.
void release_free_nodes(LoopNest& nest) {
  const std::vector<int64_t> reach = reaches(nest);
  for (Node& node : nest.nodes) {
    if (node.variable == kNone) continue;
    const Variable& variable = nest.variables[node.variable];
    const bool all_valid = variable.valid_lo <= 0 && variable.valid_hi >= reach[node.variable];
    const bool all_written = variable.write_lo <= 0 && variable.write_hi >= reach[node.variable];
    if (all_valid && all_written) node.variable = kNone;
  }
}

// A variable without loops is constantly 0. Returns false if the nest then writes nothing.
bool settle_constant_variables(LoopNest& nest) {
  for (size_t i = 0; i < nest.variables.size(); ++i) {
    const Variable& variable = nest.variables[i];
    if (variable.write_lo >= variable.write_hi) return false;
    if (variable.valid_lo >= variable.valid_hi) nest.all_zero = true;
    const int number = static_cast<int>(i);
    const bool looped = std::any_of(nest.nodes.begin(), nest.nodes.end(),
                                    [number](const Node& node) { return node.variable == number; });
    if (looped) continue;
    if (variable.write_lo > 0 || variable.write_hi < 1) return false;
    if (variable.valid_lo > 0 || variable.valid_hi < 1) nest.all_zero = true;
  }
  return true;
}

// A lookup without loops has a single result.
bool settle_constant_lookups(LoopNest& nest) {
  for (size_t i = 0; i < nest.lookups.size(); ++i) {
    const int number = static_cast<int>(i);
    const bool looped = std::any_of(nest.nodes.begin(), nest.nodes.end(),
                                    [number](const Node& node) { return node.lookup == number; });
    if (looped) continue;
    const int64_t offset = nest.lookups[i].at(0);
    if (offset == kSkip) return false;
    if (offset == kHole) {
      nest.all_zero = true;
    } else {
      nest.source_base += offset;
    }
  }
  return true;
}

bool steps_on(const Node& outer, const Node& inner) {
  return outer.lookup == inner.lookup && outer.source_stride == inner.count * inner.source_stride &&
         outer.destination_stride == inner.count * inner.destination_stride &&
         outer.lookup_stride == inner.count * inner.lookup_stride;
}

// Rescales a bound from iterations of a loop to iterations of a loop with `factor` times as many.
int64_t scaled(int64_t bound, int64_t reach, int64_t factor) {
  return std::clamp(bound, int64_t{0}, reach) * factor;
}

void scale_variable(LoopNest& nest, int number, int64_t factor) {
  const int64_t reach = reaches(nest)[number];
  Variable& variable = nest.variables[number];
  variable = {scaled(variable.write_lo, reach, factor), scaled(variable.write_hi, reach, factor),
              scaled(variable.valid_lo, reach, factor), scaled(variable.valid_hi, reach, factor)};
  for (Node& node : nest.nodes) {
    if (node.variable == number) node.weight *= factor;
  }
}

// Merges two adjacent loops where tails stay exact. Either neither loop has a tail; or both count the same
// index and the outer continues where the inner ends; or the inner has no tail and the outer is the finest
// loop of its index, which then counts the inner iterations. Any other merge would read or write beyond a
// tail.
bool merge_into_outer(LoopNest& nest, size_t outer_at) {
  Node& outer = nest.nodes[outer_at];
  Node& inner = nest.nodes[outer_at + 1];
  if (!steps_on(outer, inner)) return false;
  const bool same_index = outer.variable == inner.variable &&
                          (outer.variable == kNone || outer.weight == inner.count * inner.weight);
  const bool inner_free = inner.variable == kNone && outer.variable != kNone && outer.weight == 1;
  if (!same_index && !inner_free) return false;
  if (inner_free) scale_variable(nest, outer.variable, inner.count);
  outer.weight = inner_free ? 1 : inner.weight;
  outer.count *= inner.count;
  outer.source_stride = inner.source_stride;
  outer.destination_stride = inner.destination_stride;
  outer.lookup_stride = inner.lookup_stride;
  for (int axis : inner.axes) {
    if (std::find(outer.axes.begin(), outer.axes.end(), axis) == outer.axes.end()) outer.axes.push_back(axis);
  }
  nest.nodes.erase(nest.nodes.begin() + static_cast<std::ptrdiff_t>(outer_at) + 1);
  return true;
}

void merge_neighbours(LoopNest& nest) {
  for (size_t i = nest.nodes.size(); i-- > 1;) merge_into_outer(nest, i - 1);
}

}  // namespace

Lookup make_lookup(int64_t entries, std::function<int64_t(int64_t)> compute) {
  Lookup lookup;
  if (entries > kMaxTableEntries) {
    lookup.compute = std::move(compute);
    return lookup;
  }
  lookup.table.reserve(static_cast<size_t>(entries));
  for (int64_t i = 0; i < entries; ++i) lookup.table.push_back(compute(i));
  return lookup;
}

// From the innermost loop outwards, since each loop uses the facts of deeper ones.
void note_facts(LoopNest& nest) {
  std::vector<int64_t> below(nest.variables.size(), 0);
  std::vector<bool> seen_lookup(nest.lookups.size(), false);
  int64_t span = 1;
  for (size_t i = nest.nodes.size(); i-- > 0;) {
    Node& node = nest.nodes[i];
    node.span = span;
    if (node.variable != kNone) {
      node.below = below[node.variable];
      below[node.variable] += (node.count - 1) * node.weight;
    }
    if (node.lookup != kNone) {
      node.looks_up = !seen_lookup[node.lookup];
      seen_lookup[node.lookup] = true;
    }
    span += (node.count - 1) * node.destination_stride;
  }
}

LoopNest zero_nest(int64_t elements) {
  LoopNest nest;
  nest.all_zero = true;
  Node node;
  node.count = elements;
  node.destination_stride = 1;
  nest.nodes.push_back(node);
  note_facts(nest);
  return nest;
}

bool finish_nest(LoopNest& nest) {
  std::erase_if(nest.nodes, [](const Node& node) { return node.count == 1; });
  if (!settle_constant_variables(nest) || !settle_constant_lookups(nest)) return false;
  release_free_nodes(nest);
  std::stable_sort(nest.nodes.begin(), nest.nodes.end(),
                   [](const Node& a, const Node& b) { return a.destination_stride > b.destination_stride; });
  merge_neighbours(nest);
  if (nest.nodes.empty()) {
    Node once;
    once.source_stride = once.destination_stride = 1;
    nest.nodes.push_back(once);
  }
  note_facts(nest);
  return true;
}

}  // namespace tilework
