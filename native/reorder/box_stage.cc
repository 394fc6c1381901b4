#include "reorder/box_stage.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "layout/loop_nest.h"

namespace tilework {
namespace {

// Of fewer, a tile is not wider than what a table moves.
constexpr int64_t kFewPasses = 8;

// Levels of loops that a box has passes of, nearest steps in the source first.
std::vector<size_t> by_source(const LoopNest& nest, const NestBox& box) {
  std::vector<size_t> levels;
  for (size_t level = box.passes.size(); level-- > 0;) {
    if (box.passes[level] > 1) levels.push_back(level);
  }
  std::stable_sort(levels.begin(), levels.end(), [&nest](size_t a, size_t b) {
    return std::abs(nest.nodes[a].source_stride) < std::abs(nest.nodes[b].source_stride);
  });
  return levels;
}

}  // namespace

bool turns_steps(const LoopNest& nest, const NestBox& box) {
  // Above, a line of the source has few elements.
  constexpr int64_t kLongStep = 8;
  const std::vector<size_t> levels = by_source(nest, box);
  if (levels.empty() || levels.front() + 1 == nest.nodes.size()) return false;
  return std::abs(nest.nodes[levels.front()].source_stride) <= kLongStep &&
         box.passes[levels.front()] >= kFewPasses && box.passes.back() >= kFewPasses;
}

std::shared_ptr<const BoxStage> make_stage(const LoopNest& nest, const NestBox& box, int element_bits,
                                           StageDestination destination) {
  for (size_t level = 0; level < box.passes.size(); ++level) {
    const Node& node = nest.nodes[level];
    const bool is_still = node.source_stride == 0 || node.lookup != kNone;
    if (box.passes[level] > 1 && is_still) return nullptr;
  }
  LoopNest packed;
  packed.nodes.resize(box.passes.size());
  StageRun run{0, 0, 1, 1};
  auto stage = std::make_shared<BoxStage>();
  stage->runs.push_back(run);
  int64_t elements = 1;
  for (size_t level : by_source(nest, box)) {
    const int64_t passes = box.passes[level];
    int64_t stride = nest.nodes[level].source_stride;
    packed.nodes[level].source_stride = elements;
    if (stride < 0 && passes < kFewPasses) {
      // Forwards it may become one run with the loop around it: of pixels whose channels are reversed.
      for (StageRun& at : stage->runs) at.source += (passes - 1) * stride;
      packed.source_base += (passes - 1) * elements;
      packed.nodes[level].source_stride = -elements;
      stride = -stride;
    }
    StageRun& first = stage->runs.front();
    const bool is_first = first.count == 1 && stage->runs.size() == 1;
    if (is_first || (stage->runs.size() == 1 && stride == first.step * first.count)) {
      if (is_first) first.step = stride;
      first.count *= passes;
    } else {
      const std::vector<StageRun> once = stage->runs;
      for (int64_t i = 1; i < passes; ++i) {
        for (StageRun at : once) {
          at.source += i * stride;
          at.packed += i * elements;
          stage->runs.push_back(at);
        }
      }
    }
    elements *= passes;
  }
  stage->packed = elements;
  int64_t dense = 1;
  for (size_t level = box.passes.size(); level-- > 0;) {
    Node& node = packed.nodes[level];
    node.count = box.passes[level];
    node.destination_stride =
        destination == StageDestination::kDense ? dense : nest.nodes[level].destination_stride;
    dense *= node.count;
  }
  finish_nest(packed);
  const int64_t span = destination == StageDestination::kDense ? dense : box.destination.back() + 1;
  stage->plan = std::make_shared<ReorderPlan>(element_bits, std::move(packed), elements, span);
  return stage;
}

}  // namespace tilework
