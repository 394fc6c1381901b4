#include "dtype/parameter_map.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "error.h"
#include "io/checked_math.h"
#include "reorder/plan/nest_walk.h"

namespace tilework {
namespace {

// Puts rows one behind the other where they go on: the runs of a range in the order in which a nest has them.
class RunList {
 public:
  explicit RunList(std::vector<ParameterRun>& runs) : runs_(runs) {}

  void add(int64_t at, int64_t count, int64_t index, int64_t stride) {
    if (!runs_.empty() && goes_on(runs_.back(), at, count, index, stride)) {
      ParameterRun& last = runs_.back();
      if (last.count == 1) last.stride = index - last.index;
      last.count += count;
    } else {
      runs_.push_back({at, count, index, count == 1 ? 0 : stride});
    }
  }

 private:
  // A run of one element has any stride.
  static bool goes_on(const ParameterRun& last, int64_t at, int64_t count, int64_t index, int64_t stride) {
    if (last.at + last.count != at) return false;
    const int64_t step = last.count == 1 ? index - last.index : last.stride;
    return index == last.index + last.count * step && (count == 1 || stride == step);
  }

  std::vector<ParameterRun>& runs_;
};

// Nests of different parts come one after the other, and holes have no parameters: any will do there.
void sort_and_fill(int64_t first, int64_t last, std::vector<ParameterRun>& runs) {
  const auto is_before = [](const ParameterRun& a, const ParameterRun& b) { return a.at < b.at; };
  if (!std::is_sorted(runs.begin(), runs.end(), is_before)) std::sort(runs.begin(), runs.end(), is_before);
  int64_t covered = first;
  bool has_holes = false;
  for (const ParameterRun& run : runs) {
    has_holes = has_holes || run.at != covered;
    covered = run.at + run.count;
  }
  if (!has_holes && covered == last) return;
  std::vector<ParameterRun> filled;
  covered = first;
  for (const ParameterRun& run : runs) {
    if (run.at > covered) filled.push_back({covered, run.at - covered, 0, 0});
    filled.push_back(run);
    covered = run.at + run.count;
  }
  if (covered < last) filled.push_back({covered, last - covered, 0, 0});
  runs = std::move(filled);
}

}  // namespace

void NestParameterMap::find(int64_t first, int64_t last, std::vector<ParameterRun>& runs) const {
  runs.clear();
  RunList list(runs);
  const auto add = [&](const NestRow& row) {
    const int64_t at = first + row.destination;
    if (row.destination_stride == 1) return list.add(at, row.count, row.source, row.source_stride);
    for (int64_t i = 0; i < row.count; ++i) {
      list.add(at + i * row.destination_stride, 1, row.source + i * row.source_stride, 0);
    }
  };
  for (const LoopNest& nest : nests_) NestWalk(nest, first, last, false, add);
  sort_and_fill(first, last, runs);
}

namespace {

void check_blocks(const std::vector<int64_t>& shape, const ScalingDescription& scaling) {
  const bool are_counts =
      scaling.blocks.size() == shape.size() &&
      std::all_of(scaling.blocks.begin(), scaling.blocks.end(), [](int64_t block) { return block > 0; });
  int64_t entries = are_counts ? 1 : -1;
  for (size_t axis = 0; are_counts && axis < shape.size(); ++axis) {
    entries = checked_mul(entries, ceil_div(shape[axis], scaling.blocks[axis]), "The number of blocks");
  }
  const auto given = static_cast<int64_t>(scaling.scales.size());
  // A tensor without elements needs none.
  if (entries == given || entries == 0) return;
  throw Error(ErrorCode::kArgument, "A scaling has " + std::to_string(given) + " scales and " +
                                        std::to_string(entries) + " blocks.");
}

// The tensor of parameters as a side of a join: its entries in row-major order, and no step within a block.
BoundSide side_of(const std::vector<int64_t>& shape, const ScalingDescription& scaling) {
  BoundSide side;
  side.lower.assign(shape.size(), 0);
  side.padded = shape;
  side.elements = static_cast<int64_t>(scaling.scales.size());
  BoundPiece piece{0, 0, kMaxSafeInteger, std::vector<Dimset>(shape.size())};
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const int64_t block = std::min(scaling.blocks[axis], std::max<int64_t>(shape[axis], 1));
    const int64_t blocks = ceil_div(shape[axis], block);
    Dimset& dimset = piece.dimsets[axis];
    dimset.axes = {static_cast<int>(axis)};
    dimset.slots = block * blocks;
    if (block > 1) dimset.digits.push_back({1, block, 0});
    if (blocks > 1) dimset.digits.push_back({block, blocks, stride});
    stride *= blocks;
  }
  side.pieces.push_back(std::move(piece));
  return side;
}

}  // namespace

std::shared_ptr<const NestParameterMap> parameter_map(const ReorderDescription& description,
                                                      const ScalingDescription& scaling) {
  if (scaling.scales.size() == 1) return nullptr;
  const std::vector<int64_t>& whole = description.slice ? description.slice->shape : description.shape;
  check_blocks(whole, scaling);
  const BoundSide to = bind_side(description.shape, description.to, "to");
  const BoundSlice slice = bind_slice(description.shape, description.slice);
  return std::make_shared<NestParameterMap>(join(description.shape, side_of(whole, scaling), to, slice));
}

}  // namespace tilework
