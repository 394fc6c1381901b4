// The moves of a box (nest_box.h) in the widest steps that they allow, which is decided once for all boxes of
// a state.
#pragma once

#include <cstdint>
#include <vector>

#include "reorder/byte_shuffles.h"
#include "reorder/nest_box.h"

namespace tilework {

struct BoxStage;
struct BoxTranspose;

enum class GatherWay {
  // Runs of the destination whose sources have a fixed step.
  kRuns,
  // Runs of the destination with sources anywhere.
  kRows,
  // Pieces of equal size, each with its two places.
  kPieces,
};

// Moves [first, first + count); in runs, sources are `step` elements apart.
struct GatherRun {
  int32_t first;
  int32_t count;
  int32_t step;
};

// Pieces are at most so large.
inline constexpr int64_t kLargestPiece = 64;

struct GatherMoves {
  // Empty where the box goes another way than by lists.
  BoxMoves moves;
  // First and last element that is written, from the box's first.
  int64_t first = 0;
  int64_t last = 0;
  GatherWay way = GatherWay::kRuns;
  std::vector<GatherRun> runs;
  int64_t piece_bytes = 0;
  std::vector<int32_t> piece_destination;
  std::vector<int32_t> piece_source;
  // Another way, where there is one, for whole boxes and processors that have shuffles.
  ByteShuffles shuffles;

  // Of elements of so many bytes.
  void list(const LoopNest& nest, const NestBox& box, const BoxState& state, int64_t element_bytes);
  // The box goes another way.
  void take_whole(const NestBox& box);
  bool is_listed() const { return !moves.elements.empty(); }
  bool empty() const { return is_listed() && moves.empty(); }
  int64_t bytes() const;
};

// Lists the moves of a state; not those of boxes that are transposed or go through a stage, either of which
// may be null: then none are.
void list_gather(GatherMoves& made, const LoopNest& nest, const NestBox& box, const BoxState& state,
                 const BoxStage* stage, const BoxTranspose* transpose, int64_t element_bytes);

}  // namespace tilework
