// A box of a nest: some passes of each of its loops, whose elements lie near to each other on both sides. The
// way of an element through the loops is the same in every box, so it is walked once, when the plan is made,
// and kept as tables: place in the source, place in the destination, what it adds to the bounded indices and
// to the lookups. What differs from box to box - tails, the answers of lookups - is a state. Few boxes have a
// state of their own, so for each state the moves are listed once (BoxMoves) and then made in all its boxes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/join.h"

namespace tilework {

// Bytes of all tables of a box: what stays in the second-level cache beside the data.
inline constexpr int64_t kMaxBoxTableBytes = 64 << 10;
// How large a box is, in elements.
struct BoxLimits {
  // What it has of each side at least, where there is as much: a cache line, or what kernels take at once.
  int64_t line;
  // With its moves it stays in the first-level cache.
  int64_t most;
};

// 2048 elements, as more gain nothing. 4-bit elements are moved as bytes; larger boxes have longer runs of
// them.
constexpr BoxLimits box_limits(int element_bits) {
  return element_bits < 8 ? BoxLimits{64, 4096} : BoxLimits{64 * 8 / element_bits, 2048};
}

// An index that decides which elements of a box are written and have a source: a variable of the nest, or the
// passes of a loop that boxes cut, of which the last box may have fewer.
struct BoxIndex {
  // One of the two; the other is kNone.
  int variable = kNone;
  int level = kNone;
  // What each element of the box adds, and the most that one does.
  std::vector<int32_t> added;
  int64_t most = 0;
};

struct NestBox {
  NestBox(const LoopNest& nest, BoxLimits limits, int64_t source_elements);

  // Passes of each loop of the nest that one box has.
  std::vector<int64_t> passes;
  // The loops that go from box to box: those that change the state first.
  std::vector<size_t> order;
  size_t stateful = 0;
  // Tables by element, in ascending order of the destination: elements from the box's first.
  std::vector<int32_t> destination;
  std::vector<int32_t> source;
  std::vector<BoxIndex> indices;
  // By lookup, then by element; empty for a lookup that no loop steps through.
  std::vector<std::vector<int32_t>> lookups;

  int64_t elements() const { return static_cast<int64_t>(destination.size()); }
  int64_t bytes() const;

 private:
  void set_order(const LoopNest& nest);
  void list_indices(const LoopNest& nest);
  void fill(const LoopNest& nest);
};

// The state of a box: for each of its indices the bounds as they are inside the box, and the place of each
// lookup. Equal states have equal moves.
struct BoxState {
  struct Bounds {
    int64_t write_lo, write_hi, valid_lo, valid_hi;
    bool operator==(const Bounds&) const = default;
  };
  std::vector<Bounds> bounds;
  std::vector<int64_t> lookups;

  bool operator==(const BoxState&) const = default;
};

// The state of the box that the walk has come to. Loops are entered and left one inside the other.
class BoxPlace {
 public:
  BoxPlace(const LoopNest& nest, const NestBox& box);

  // `pass` is the first that the box has of the loop.
  void enter(size_t level, int64_t pass);
  void leave(size_t level, int64_t pass);
  void get_state(BoxState& state) const;

 private:
  BoxState::Bounds bounds_of(const BoxIndex& index) const;

  const LoopNest& nest_;
  const NestBox& box_;
  std::vector<int64_t> index_;
  std::vector<int64_t> lookup_index_;
  std::vector<int64_t> passes_;
};

// The states of the first boxes, each once and `most` at most.
std::vector<BoxState> first_states(const LoopNest& nest, const NestBox& box, size_t most);

// The state in which no tail cuts a box.
BoxState state_of_full(const NestBox& box);

// Whether all elements of a box in this state have a source whose place is known without lookups.
bool is_full(const LoopNest& nest, const NestBox& box, const BoxState& state);

// Whether the box has all passes of a variable's loops: then its bounds are the same in every box.
bool has_all_of(const LoopNest& nest, const NestBox& box, int variable);

// The state in which no tail cuts a box, other than those of variables that the box has all of.
BoxState state_of_uncut(const LoopNest& nest, const NestBox& box);

// Whether a box is in this state, and no place is looked up.
bool is_uncut(const LoopNest& nest, const NestBox& box, const BoxState& state);

// The moves of all boxes of a state, as a mover lists them.
template <class Moves>
struct KnownMoves {
  BoxState state;
  Moves moves;
};

// The first, the last and the other boxes of two loops are nine states.
inline constexpr size_t kKnownStates = 9;

// What happens to an element of a box.
enum class BoxElement : uint8_t { kMoved, kZero, kKept };

// `count` elements that are side by side in the destination.
struct BoxRange {
  int32_t destination;
  int32_t count;
};

// The moves of all boxes of a state.
struct BoxMoves {
  // Elements that have a source, in ascending order of the destination. Sources count from `source_base`,
  // which counts from the box's first element.
  std::vector<int32_t> destination;
  std::vector<int32_t> source;
  int64_t source_base = 0;
  std::vector<BoxRange> zeros;
  // What becomes of each element of the box.
  std::vector<BoxElement> elements;

  bool empty() const { return destination.empty() && zeros.empty(); }
  void list(const LoopNest& nest, const NestBox& box, const BoxState& state);

 private:
  void mark(const LoopNest& nest, const NestBox& box, const BoxState& state);
  std::vector<int64_t> source_offsets(const LoopNest& nest, const NestBox& box, const BoxState& state);
};

}  // namespace tilework
