#include "opencl/slot_digits.h"

#include <algorithm>

#include "io/checked_math.h"

namespace tilework::cl {
namespace {

// Loops of a variable, widest weights first.
std::vector<size_t> loops_of(const LoopNest& nest, int variable) {
  std::vector<size_t> loops;
  for (size_t i = 0; i < nest.nodes.size(); ++i) {
    if (nest.nodes[i].variable == variable) loops.push_back(i);
  }
  std::stable_sort(loops.begin(), loops.end(),
                   [&nest](size_t a, size_t b) { return nest.nodes[a].weight > nest.nodes[b].weight; });
  return loops;
}

// Whether the loops together step through the destination like one digit.
bool is_one_digit(const LoopNest& nest, const std::vector<size_t>& loops) {
  const Node& finest = nest.nodes[loops.back()];
  return std::all_of(loops.begin(), loops.end(), [&](size_t i) {
    const Node& node = nest.nodes[i];
    return node.weight % finest.weight == 0 &&
           node.destination_stride == node.weight / finest.weight * finest.destination_stride;
  });
}

SlotDigit digit_of(const LoopNest& nest, const std::vector<size_t>& loops, const Variable& variable) {
  const Node& finest = nest.nodes[loops.back()];
  int64_t reach = 1;
  SlotDigit digit{finest.destination_stride, 0, 0, {}};
  for (const size_t i : loops) {
    reach += (nest.nodes[i].count - 1) * (nest.nodes[i].weight / finest.weight);
    digit.loops.push_back({i, nest.nodes[i].weight / finest.weight});
  }
  digit.first = std::clamp(ceil_div(variable.write_lo, finest.weight), int64_t{0}, reach);
  digit.count = std::clamp(ceil_div(variable.write_hi, finest.weight), digit.first, reach) - digit.first;
  return digit;
}

}  // namespace

SlotDigits slot_digits(const LoopNest& nest) {
  SlotDigits result{nest.destination_base, {}};
  std::vector<bool> is_taken(nest.nodes.size(), false);
  for (size_t v = 0; v < nest.variables.size(); ++v) {
    const std::vector<size_t> loops = loops_of(nest, static_cast<int>(v));
    if (loops.empty() || !is_one_digit(nest, loops)) continue;
    for (const size_t i : loops) is_taken[i] = true;
    result.digits.push_back(digit_of(nest, loops, nest.variables[v]));
  }
  for (size_t i = 0; i < nest.nodes.size(); ++i) {
    const Node& node = nest.nodes[i];
    if (!is_taken[i]) result.digits.push_back({node.destination_stride, 0, node.count, {{i, 1}}});
  }
  std::stable_sort(result.digits.begin(), result.digits.end(),
                   [](const SlotDigit& a, const SlotDigit& b) { return a.stride > b.stride; });
  for (const SlotDigit& digit : result.digits) result.base += digit.first * digit.stride;
  return result;
}

}  // namespace tilework::cl
