// Moves the elements of boxes (nest_box.h), for nests that are neither runs nor tiles, the way that
// gather_moves.h has chosen. Internal to each file, as nest_walk.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "reorder/box_stage.h"
#include "reorder/box_transpose.h"
#include "reorder/gather_moves.h"
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

// What a processor has for boxes; null where it has nothing, then other ways are taken.
struct GatherInstructions {
  ShuffleBytes shuffle;
  TransposeListed transpose;
};

// What a mover takes from the plan; the stage and the rectangles may be null.
struct GatherPlan {
  const LoopNest& nest;
  const NestBox& box;
  const BoxStage* stage;
  const BoxTranspose* transpose;
};

template <class T>
class GatherMover {
 public:
  GatherMover(const ReorderArguments& arguments, const GatherPlan& plan, GatherInstructions instructions,
              int64_t begin, int64_t end)
      : source_(arguments.source),
        destination_(arguments.destination),
        plan_(plan),
        instructions_(instructions),
        begin_(begin),
        end_(end),
        packed_(bytes_of(plan)) {}

  using Moves = GatherMoves;

  void list(Moves& made, const LoopNest& nest, const NestBox& box, const BoxState& state) const {
    list_gather(made, nest, box, state, plan_.stage, plan_.transpose, kSize);
  }

  void move(const Moves& made, int64_t s, int64_t d) {
    const bool is_whole = d + made.first >= begin_ && d + made.last < end_;
    if (made.is_listed()) return move_listed(made, s, d, is_whole);
    if (!is_whole) return move_listed(whole(), s, d, false);
    const uint8_t* from = source_ + s * kSize;
    uint8_t* to = destination_ + (d - begin_) * kSize;
    if (plan_.transpose != nullptr) return move_transposed(from, to);
    move_staged(from, to);
  }

  // Moves what it has put off.
  void finish() {
    if (next_.source != nullptr) transpose(next_, {});
    next_ = {};
  }

 private:
  static constexpr int64_t kSize = sizeof(T);

  static size_t bytes_of(const GatherPlan& plan) {
    return plan.stage == nullptr ? 0 : static_cast<size_t>(plan.stage->packed * kSize);
  }

  // Lists of a box that goes another way, for one of which a range has only a part.
  const Moves& whole() {
    if (!whole_) whole_.emplace().list(plan_.nest, plan_.box, state_of_uncut(plan_.nest, plan_.box), kSize);
    return *whole_;
  }

  void move_listed(const Moves& made, int64_t s, int64_t d, bool is_whole) const {
    // Boxes of holes have no place in the source, of which there may be none.
    const uint8_t* from =
        made.moves.destination.empty() ? nullptr : source_ + (s + made.moves.source_base) * kSize;
    uint8_t* to = destination_ + (d - begin_) * kSize;
    if (!is_whole) return move_part(made, from, to, d);
    for (const BoxRange& zeros : made.moves.zeros) zero(to, zeros.destination, zeros.count);
    if (instructions_.shuffle != nullptr && made.shuffles.windows > 0) {
      return instructions_.shuffle(made.shuffles.groups(), from, to);
    }
    switch (made.way) {
      case GatherWay::kRuns:
        for (const GatherRun& run : made.runs) move_run(made.moves, from, to, run, 0, run.count);
        return;
      case GatherWay::kRows:
        for (const GatherRun& run : made.runs) move_row(made.moves, from, to, run, 0, run.count);
        return;
      case GatherWay::kPieces:
        return move_pieces(made, from, to);
    }
  }

  static void zero(uint8_t* to, int64_t at, int64_t count) {
    std::memset(to + at * kSize, 0, static_cast<size_t>(count * kSize));
  }

  // Elements [begin, end) of a run.
  static void move_run(const BoxMoves& moves, const uint8_t* from, uint8_t* to, const GatherRun& run,
                       int64_t begin, int64_t end) {
    const auto first = static_cast<size_t>(run.first);
    const uint8_t* source = from + (moves.source[first] + begin * run.step) * kSize;
    uint8_t* destination = to + (moves.destination[first] + begin) * kSize;
    const int64_t count = end - begin;
    if (run.step == 1) return copy_bytes(destination, source, count * kSize);
    copy_strided<T>(source, run.step, destination, count);
  }

  static void move_row(const BoxMoves& moves, const uint8_t* source, uint8_t* destination,
                       const GatherRun& run, int64_t begin, int64_t end) {
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

  struct Place {
    const uint8_t* source = nullptr;
    uint8_t* destination = nullptr;
  };

  // Lines that are far apart are asked for one rectangle ahead.
  void move_transposed(const uint8_t* from, uint8_t* to) {
    for (const BoxRange& zeros : plan_.transpose->zeros) zero(to, zeros.destination, zeros.count);
    for (const BoxTranspose::Rectangle& rectangle : plan_.transpose->rectangles) {
      const Place place{from + rectangle.source, to + rectangle.destination};
      if (!plan_.transpose->by_lines) {
        transpose(place, {});
        continue;
      }
      if (next_.source != nullptr) transpose(next_, place);
      next_ = place;
    }
  }

  void transpose(const Place& place, const Place& next) {
    const BoxTranspose& by = *plan_.transpose;
    ListedPlaces places = by.places();
    if (next.source != nullptr) {
      places.next_source = lines_at(next.source, by.source_lines);
      places.next_destination = lines_at(next.destination, by.destination_lines);
    }
    instructions_.transpose(places, place.source, place.destination);
  }

  static ListedPlaces::Lines lines_at(const uint8_t* first, const std::vector<int64_t>& places) {
    return {first, places.data(), static_cast<int64_t>(places.size())};
  }

  void move_staged(const uint8_t* from, uint8_t* to) {
    for (const StageRun& run : plan_.stage->runs) {
      copy_strided<T>(from + run.source * kSize, run.step, packed_.data() + run.packed * kSize, run.count);
    }
    plan_.stage->plan->run(packed_.data(), to, 0, plan_.stage->plan->destination_bytes());
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
    for (const GatherRun& run : made.runs) {
      inside(moves.destination[static_cast<size_t>(run.first)], run.count, [&](int64_t begin, int64_t end) {
        if (made.way == GatherWay::kRows) {
          move_row(moves, from, to, run, begin, end);
        } else {
          move_run(moves, from, to, run, begin, end);
        }
      });
    }
  }

  const uint8_t* source_;
  uint8_t* destination_;
  GatherPlan plan_;
  GatherInstructions instructions_;
  int64_t begin_;
  int64_t end_;
  std::vector<uint8_t> packed_;
  std::optional<Moves> whole_;
  Place next_;
};

// A plan has boxes where its kernel needs them; a kernel that is called for another plan makes its own.
template <class T>
void gather(const ReorderArguments& arguments, size_t i, GatherInstructions instructions, int64_t begin,
            int64_t end) {
  const ReorderPlan& plan = arguments.plan;
  const LoopNest& nest = plan.nests()[i];
  const NestBox* box = plan.box(i);
  std::optional<NestBox> own;
  if (box == nullptr) box = &own.emplace(nest, box_limits(plan.element_bits()), plan.source_elements());
  GatherMover<T> mover(arguments, {nest, *box, plan.stage(i), plan.transpose(i)}, instructions, begin, end);
  BoxWalk<GatherMover<T>>(nest, *box, plan.gather_moves(i), begin, end, mover).run();
  mover.finish();
}

}  // namespace
}  // namespace tilework
