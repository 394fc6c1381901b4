// Moves the elements of boxes (nest_box.h), for nests that are neither runs nor tiles. The moves of a box are
// made in the widest steps that they allow, which is decided once for all boxes of a state. Internal to each
// file, as nest_walk.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "reorder/box_stage.h"
#include "reorder/nest_box_walk.h"
#include "reorder/nest_walk.h"
#include "reorder/plan.h"
#include "reorder/strided_copy.h"

namespace tilework {
namespace {

inline void copy_bytes(uint8_t* to, const uint8_t* from, int64_t size) {
  if (size < 16) {
    for (int64_t i = 0; i < size; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + 16 <= size; i += 16) std::memcpy(to + i, from + i, 16);
  std::memcpy(to + size - 16, from + size - 16, 16);
}

template <class T>
class GatherMover {
 public:
  GatherMover(const ReorderArguments& arguments, const BoxStage* stage, int64_t begin, int64_t end)
      : source_(arguments.source),
        destination_(arguments.destination),
        stage_(stage),
        begin_(begin),
        end_(end),
        packed_(stage == nullptr ? 0 : static_cast<size_t>(stage->packed * kSize)) {}

  enum class Way {
    // Runs of the destination whose sources have a fixed step.
    kRuns,
    // Runs of the destination with sources anywhere.
    kRows,
    // Pieces of equal size, each with its two places.
    kPieces,
  };

  // Moves [first, first + count).
  struct Run {
    int32_t first;
    int32_t count;
    int32_t step;
  };

  struct Moves {
    BoxMoves moves;
    // First and last element that is written.
    int64_t first;
    int64_t last;
    bool is_full;
    Way way;
    std::vector<Run> runs;
    int64_t piece_bytes;
    std::vector<int32_t> piece_destination;
    std::vector<int32_t> piece_source;
  };

  static void prepare(Moves& made) {
    const BoxMoves& moves = made.moves;
    made.first = INT32_MAX;
    made.last = 0;
    if (!moves.destination.empty()) {
      made.first = moves.destination.front();
      made.last = moves.destination.back();
    }
    if (!moves.zeros.empty()) {
      made.first = std::min<int64_t>(made.first, moves.zeros.front().destination);
      made.last = std::max<int64_t>(made.last, moves.zeros.back().destination + moves.zeros.back().count - 1);
    }
    made.is_full = moves.destination.size() == moves.elements.size();
    choose_way(made);
  }

  void move(const Moves& made, int64_t s, int64_t d) {
    // Boxes of holes have no place in the source, of which there may be none.
    const uint8_t* from =
        made.moves.destination.empty() ? nullptr : source_ + (s + made.moves.source_base) * kSize;
    uint8_t* to = destination_ + (d - begin_) * kSize;
    const bool is_whole = d + made.first >= begin_ && d + made.last < end_;
    if (!is_whole) return move_part(made, from, to, d);
    if (stage_ != nullptr && made.is_full) return move_staged(source_ + s * kSize, to);
    for (const BoxRange& zeros : made.moves.zeros) zero(to, zeros.destination, zeros.count);
    switch (made.way) {
      case Way::kRuns:
        for (const Run& run : made.runs) move_run(made.moves, from, to, run, 0, run.count);
        return;
      case Way::kRows:
        for (const Run& run : made.runs) move_row(made.moves, from, to, run, 0, run.count);
        return;
      case Way::kPieces:
        return move_pieces(made, from, to);
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(T);

  // The beginning of a run costs as much as a table does for so many elements, and a run of so many bytes as
  // much as a piece.
  static constexpr int64_t kShortRun = 8;
  static constexpr int64_t kShortRunBytes = 16;
  static constexpr int64_t kLargestPiece = 64;

  template <class GoesOn>
  static void find_runs(Moves& made, GoesOn goes_on) {
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

  static void choose_way(Moves& made) {
    const auto moves = static_cast<int64_t>(made.moves.destination.size());
    const auto runs = [&made] { return static_cast<int64_t>(made.runs.size()); };
    find_runs(made, [](const Run&, int32_t step) { return step == 1; });
    const int64_t common = common_piece(made);
    if (common > 1) return take_pieces(made, common);
    made.way = Way::kRuns;
    if (moves * kSize >= runs() * kShortRunBytes && kSize < kShortRunBytes) return;
    find_runs(made, [](const Run& run, int32_t step) { return run.count == 1 || step == run.step; });
    if (moves >= runs() * kShortRun) return;
    made.way = Way::kRows;
    find_runs(made, [](const Run&, int32_t) { return true; });
    if (moves >= runs() * kShortRun) return;
    find_runs(made, [](const Run&, int32_t) { return false; });
    take_pieces(made, 1);
  }

  // Elements of all runs, where they are the same power of two and no more than a piece; else 1.
  static int64_t common_piece(const Moves& made) {
    if (made.runs.empty()) return 1;
    const int64_t count = made.runs.front().count;
    const bool is_piece = (count & (count - 1)) == 0 && count * kSize <= kLargestPiece;
    const bool is_common =
        std::all_of(made.runs.begin(), made.runs.end(), [=](const Run& run) { return run.count == count; });
    return is_piece && is_common ? count : 1;
  }

  static void take_pieces(Moves& made, int64_t elements) {
    made.way = Way::kPieces;
    made.piece_bytes = elements * kSize;
    made.piece_destination.clear();
    made.piece_source.clear();
    for (const Run& run : made.runs) {
      made.piece_destination.push_back(made.moves.destination[static_cast<size_t>(run.first)]);
      made.piece_source.push_back(made.moves.source[static_cast<size_t>(run.first)]);
    }
  }

  static void zero(uint8_t* to, int64_t at, int64_t count) {
    std::memset(to + at * kSize, 0, static_cast<size_t>(count * kSize));
  }

  // Elements [begin, end) of a run.
  static void move_run(const BoxMoves& moves, const uint8_t* from, uint8_t* to, const Run& run, int64_t begin,
                       int64_t end) {
    const auto first = static_cast<size_t>(run.first);
    const uint8_t* source = from + (moves.source[first] + begin * run.step) * kSize;
    uint8_t* destination = to + (moves.destination[first] + begin) * kSize;
    const int64_t count = end - begin;
    if (run.step == 1) return copy_bytes(destination, source, count * kSize);
    copy_strided<T>(source, run.step, destination, count);
  }

  static void move_row(const BoxMoves& moves, const uint8_t* source, uint8_t* destination, const Run& run,
                       int64_t begin, int64_t end) {
    const auto first = static_cast<size_t>(run.first);
    const auto* __restrict from = reinterpret_cast<const Loose<T>*>(source);
    auto* __restrict to = reinterpret_cast<Loose<T>*>(destination) + moves.destination[first];
    const int32_t* __restrict table = moves.source.data() + first;
    for (int64_t i = begin; i < end; ++i) to[i] = from[table[i]];
  }

  static void move_pieces(const Moves& made, const uint8_t* from, uint8_t* to) {
    switch (made.piece_bytes) {
      case 1:
        return move_pieces_of<1>(made, from, to);
      case 2:
        return move_pieces_of<2>(made, from, to);
      case 4:
        return move_pieces_of<4>(made, from, to);
      case 8:
        return move_pieces_of<8>(made, from, to);
      case 16:
        return move_pieces_of<16>(made, from, to);
      case 32:
        return move_pieces_of<32>(made, from, to);
      default:
        return move_pieces_of<kLargestPiece>(made, from, to);
    }
  }

  template <int64_t kBytes>
  static void move_pieces_of(const Moves& made, const uint8_t* from, uint8_t* to) {
    const size_t count = made.piece_destination.size();
    const int32_t* destination = made.piece_destination.data();
    const int32_t* source = made.piece_source.data();
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(to + destination[i] * kSize, from + source[i] * kSize, kBytes);
    }
  }

  void move_staged(const uint8_t* from, uint8_t* to) {
    for (const StageRun& run : stage_->runs) {
      copy_strided<T>(from + run.source * kSize, run.step, packed_.data() + run.packed * kSize, run.count);
    }
    stage_->plan->run(packed_.data(), to, 0, stage_->plan->destination_bytes());
  }

  // What the range holds of the box.
  void move_part(const Moves& made, const uint8_t* from, uint8_t* to, int64_t d) const {
    const auto inside = [&](int64_t at, int64_t count, auto body) {
      const int64_t begin = std::clamp(begin_ - d - at, int64_t{0}, count);
      const int64_t end = std::clamp(end_ - d - at, begin, count);
      if (begin < end) body(begin, end);
    };
    for (const BoxRange& zeros : made.moves.zeros) {
      inside(zeros.destination, zeros.count,
             [&](int64_t begin, int64_t end) { zero(to, zeros.destination + begin, end - begin); });
    }
    const BoxMoves& moves = made.moves;
    for (const Run& run : made.runs) {
      inside(moves.destination[static_cast<size_t>(run.first)], run.count, [&](int64_t begin, int64_t end) {
        if (made.way == Way::kRows) {
          move_row(moves, from, to, run, begin, end);
        } else {
          move_run(moves, from, to, run, begin, end);
        }
      });
    }
  }

  const uint8_t* source_;
  uint8_t* destination_;
  const BoxStage* stage_;
  int64_t begin_;
  int64_t end_;
  std::vector<uint8_t> packed_;
};

// A plan has boxes where its kernel needs them; a kernel that is called for another plan makes its own.
template <class T>
void gather(const ReorderArguments& arguments, size_t i, int64_t begin, int64_t end) {
  const ReorderPlan& plan = arguments.plan;
  const LoopNest& nest = plan.nests()[i];
  const NestBox* box = plan.box(i);
  std::optional<NestBox> own;
  if (box == nullptr) box = &own.emplace(nest, box_limits(plan.element_bits()), plan.source_elements());
  GatherMover<T> mover(arguments, plan.stage(i), begin, end);
  BoxWalk<GatherMover<T>>(nest, *box, begin, end, mover).run();
}

}  // namespace
}  // namespace tilework
