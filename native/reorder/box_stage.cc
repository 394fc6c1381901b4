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

// The source of a box as runs, while loops are added from the nearest steps on.
class RunPacking {
 public:
  int64_t elements() const { return elements_; }

  // All elements so far come again after each `stride`.
  void add(int64_t passes, int64_t stride) {
    StageRun& first = runs_.front();
    const bool is_one = runs_.size() == 1;
    if (is_one && first.count == 1) {
      first = {first.source, first.packed, passes, stride};
    } else if (is_one && stride == first.step * first.count) {
      first.count *= passes;
    } else {
      repeat(passes, stride);
    }
    elements_ *= passes;
  }

  void move_source(int64_t distance) {
    for (StageRun& run : runs_) run.source += distance;
  }

  std::vector<StageRun> take() { return std::move(runs_); }

 private:
  void repeat(int64_t passes, int64_t stride) {
    const size_t count = runs_.size();
    for (int64_t i = 1; i < passes; ++i) {
      for (size_t k = 0; k < count; ++k) {
        StageRun run = runs_[k];
        run.source += i * stride;
        run.packed += i * elements_;
        runs_.push_back(run);
      }
    }
  }

  std::vector<StageRun> runs_ = {{0, 0, 1, 1}};
  int64_t elements_ = 1;
};

// Packs the source; the source strides and the base of `packed` become those among packed elements.
RunPacking pack_source(const LoopNest& nest, const NestBox& box, LoopNest& packed) {
  RunPacking packing;
  for (size_t level : by_source(nest, box)) {
    const int64_t passes = box.passes[level];
    const int64_t stride = nest.nodes[level].source_stride;
    const int64_t elements = packing.elements();
    if (stride < 0 && passes < kFewPasses) {
      // Forwards it may become one run with the loop around it: of pixels whose channels are reversed.
      packing.move_source((passes - 1) * stride);
      packing.add(passes, -stride);
      packed.source_base += (passes - 1) * elements;
      packed.nodes[level].source_stride = -elements;
    } else {
      packing.add(passes, stride);
      packed.nodes[level].source_stride = elements;
    }
  }
  return packing;
}

}  // namespace

std::shared_ptr<const BoxStage> make_stage(const LoopNest& nest, const NestBox& box) {
  for (size_t level = 0; level < box.passes.size(); ++level) {
    const Node& node = nest.nodes[level];
    const bool is_still = node.source_stride == 0 || node.lookup != kNone;
    if (box.passes[level] > 1 && is_still) return nullptr;
  }
  LoopNest packed;
  packed.nodes.resize(box.passes.size());
  RunPacking packing = pack_source(nest, box, packed);
  int64_t dense = 1;
  for (size_t level = box.passes.size(); level-- > 0;) {
    Node& node = packed.nodes[level];
    node.count = box.passes[level];
    node.destination_stride = dense;
    dense *= node.count;
  }
  finish_nest(packed);
  const int64_t elements = packing.elements();
  auto plan =
      std::make_shared<const ReorderPlan>(8, std::vector<LoopNest>{std::move(packed)}, elements, dense);
  return std::make_shared<const BoxStage>(BoxStage{packing.take(), elements, std::move(plan)});
}

}  // namespace tilework
