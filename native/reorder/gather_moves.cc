#include "reorder/gather_moves.h"

#include <algorithm>
#include <cstddef>

namespace tilework {
namespace {

// The beginning of a run costs as much as a table does for so many elements, and a run of so many bytes as
// much as a piece.
constexpr int64_t kShortRun = 8;
constexpr int64_t kShortRunBytes = 16;

template <class GoesOn>
void find_runs(GatherMoves& made, GoesOn goes_on) {
  const std::vector<int32_t>& destination = made.moves.destination;
  const std::vector<int32_t>& source = made.moves.source;
  made.runs.clear();
  for (size_t i = 0; i < destination.size(); ++i) {
    const int32_t step = i > 0 ? source[i] - source[i - 1] : 0;
    if (i > 0 && destination[i] == destination[i - 1] + 1 && goes_on(made.runs.back(), step)) {
      if (made.runs.back().count++ == 1) made.runs.back().step = step;
    } else {
      made.runs.push_back({static_cast<int32_t>(i), 1, 1});
    }
  }
}

// Elements of all runs, where they are the same power of two and no more than a piece; else 1.
int64_t common_piece(const GatherMoves& made, int64_t size) {
  if (made.runs.empty()) return 1;
  const int64_t count = made.runs.front().count;
  const bool is_piece = (count & (count - 1)) == 0 && count * size <= kLargestPiece;
  const bool is_common = std::all_of(made.runs.begin(), made.runs.end(),
                                     [=](const GatherRun& run) { return run.count == count; });
  return is_piece && is_common ? count : 1;
}

void take_pieces(GatherMoves& made, int64_t bytes) {
  made.way = GatherWay::kPieces;
  made.piece_bytes = bytes;
  for (const GatherRun& run : made.runs) {
    made.piece_destination.push_back(made.moves.destination[static_cast<size_t>(run.first)]);
    made.piece_source.push_back(made.moves.source[static_cast<size_t>(run.first)]);
  }
}

void choose_way(GatherMoves& made, int64_t size) {
  const auto moves = static_cast<int64_t>(made.moves.destination.size());
  const auto runs = [&made] { return static_cast<int64_t>(made.runs.size()); };
  find_runs(made, [](const GatherRun&, int32_t step) { return step == 1; });
  const int64_t common = common_piece(made, size);
  if (common > 1) return take_pieces(made, common * size);
  made.way = GatherWay::kRuns;
  if (moves * size >= runs() * kShortRunBytes && size < kShortRunBytes) return;
  find_runs(made, [](const GatherRun& run, int32_t step) { return run.count == 1 || step == run.step; });
  if (moves >= runs() * kShortRun) return;
  made.way = GatherWay::kRows;
  find_runs(made, [](const GatherRun&, int32_t) { return true; });
  if (moves >= runs() * kShortRun) return;
  find_runs(made, [](const GatherRun&, int32_t) { return false; });
  take_pieces(made, size);
}

// Whether most runs are shorter than what a shuffle makes at once, and no loop of a known step is as good.
bool gains_by_shuffles(const GatherMoves& made, int64_t size) {
  constexpr int64_t kLargestShuffled = 2;
  if (made.way == GatherWay::kPieces) return made.piece_bytes < kShortRunBytes;
  if (made.way == GatherWay::kRows) return true;
  return size <= kLargestShuffled && !made.runs.empty() && made.runs.front().step != 1;
}

}  // namespace

void GatherMoves::list(const LoopNest& nest, const NestBox& box, const BoxState& state,
                       int64_t element_bytes) {
  moves.list(nest, box, state);
  piece_destination.clear();
  piece_source.clear();
  first = INT32_MAX;
  last = 0;
  if (!moves.destination.empty()) {
    first = moves.destination.front();
    last = moves.destination.back();
  }
  if (!moves.zeros.empty()) {
    first = std::min<int64_t>(first, moves.zeros.front().destination);
    last = std::max<int64_t>(last, moves.zeros.back().destination + moves.zeros.back().count - 1);
  }
  choose_way(*this, element_bytes);
  shuffles = gains_by_shuffles(*this, element_bytes)
                 ? shuffles_of(moves.destination, moves.source, element_bytes)
                 : ByteShuffles{};
}

void GatherMoves::take_whole(const NestBox& box) {
  moves = {};
  first = 0;
  last = box.destination.back();
}

int64_t GatherMoves::bytes() const {
  const size_t words = moves.destination.size() + moves.source.size() + piece_destination.size() +
                       piece_source.size() + shuffles.destination.size() + shuffles.source.size();
  return static_cast<int64_t>(words * sizeof(int32_t) + moves.elements.size() +
                              moves.zeros.size() * sizeof(BoxRange) + runs.size() * sizeof(GatherRun) +
                              shuffles.places.size());
}

void list_gather(GatherMoves& made, const LoopNest& nest, const NestBox& box, const BoxState& state,
                 const BoxStage* stage, const BoxTranspose* transpose, int64_t element_bytes) {
  if (transpose != nullptr && is_uncut(nest, box, state)) return made.take_whole(box);
  if (transpose == nullptr && stage != nullptr && is_full(nest, box, state)) return made.take_whole(box);
  made.list(nest, box, state, element_bytes);
}

}  // namespace tilework
