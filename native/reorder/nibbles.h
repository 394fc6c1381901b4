// Moves of 4-bit elements, two a byte, low half first. Nothing shorter than a byte has an address, so a box
// (nest_box.h) is unpacked to a byte an element in the first-level cache, moved there by the kernels for
// bytes, and packed again. Long runs are copied, shifted by half a byte where they begin in the other half.
// Destinations are zero before; the halves of bytes that two runs share are added by OR. Internal to each
// file, as nest_walk.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "io/checked_math.h"
#include "reorder/box_stage.h"
#include "reorder/box_transpose.h"
#include "reorder/nest_box_walk.h"
#include "reorder/nest_walk.h"
#include "reorder/plan.h"
#include "reorder/strided_copy.h"

namespace tilework {
namespace {

using Bytes16 = uint8_t __attribute__((vector_size(16)));

inline Bytes16 load_bytes16(const uint8_t* at) {
  Bytes16 bytes;
  std::memcpy(&bytes, at, sizeof(bytes));
  return bytes;
}

inline void store_bytes16(uint8_t* at, Bytes16 bytes) { std::memcpy(at, &bytes, sizeof(bytes)); }

inline void unpack16(const uint8_t* source, uint8_t* bytes) {
  const Bytes16 both = load_bytes16(source);
  const Bytes16 low = both & 15;
  const Bytes16 high = both >> 4;
  store_bytes16(bytes,
                __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  store_bytes16(bytes + 16, __builtin_shufflevector(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                    14, 30, 15, 31));
}

inline Bytes16 even_bytes(Bytes16 first, Bytes16 second) {
  return __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

inline Bytes16 odd_bytes(Bytes16 first, Bytes16 second) {
  return __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}

inline void pack16(const uint8_t* bytes, uint8_t* destination) {
  const Bytes16 first = load_bytes16(bytes);
  const Bytes16 second = load_bytes16(bytes + 16);
  store_bytes16(destination, even_bytes(first, second) | (odd_bytes(first, second) << 4));
}

// Nibbles from number `first` of `source` on, a byte each.
inline void unpack_nibbles(const uint8_t* source, int64_t first, uint8_t* bytes, int64_t count) {
  source += first / 2;
  if (first % 2 != 0 && count > 0) {
    *bytes++ = static_cast<uint8_t>(*source++ >> 4);
    --count;
  }
  const int64_t pairs = count / 2;
  int64_t i = 0;
  for (; i + 16 <= pairs; i += 16) unpack16(source + i, bytes + 2 * i);
  if (i > 0 && i < pairs) {
    unpack16(source + pairs - 16, bytes + 2 * (pairs - 16));
    i = pairs;
  }
  for (; i < pairs; ++i) {
    bytes[2 * i] = source[i] & 15;
    bytes[2 * i + 1] = static_cast<uint8_t>(source[i] >> 4);
  }
  if (count % 2 != 0) bytes[count - 1] = source[pairs] & 15;
}

// Bytes below 16 as nibbles from number `first` of `destination` on.
inline void pack_nibbles(const uint8_t* bytes, uint8_t* destination, int64_t first, int64_t count) {
  destination += first / 2;
  if (first % 2 != 0 && count > 0) {
    *destination = static_cast<uint8_t>(*destination | *bytes++ << 4);
    ++destination;
    --count;
  }
  const int64_t pairs = count / 2;
  int64_t i = 0;
  for (; i + 16 <= pairs; i += 16) pack16(bytes + 2 * i, destination + i);
  if (i > 0 && i < pairs) {
    pack16(bytes + 2 * (pairs - 16), destination + pairs - 16);
    i = pairs;
  }
  for (; i < pairs; ++i) destination[i] = static_cast<uint8_t>(bytes[2 * i] | bytes[2 * i + 1] << 4);
  if (count % 2 != 0) destination[pairs] = static_cast<uint8_t>(destination[pairs] | bytes[count - 1]);
}

inline uint8_t nibble_at(const uint8_t* source, int64_t s) { return (source[s / 2] >> (s % 2 * 4)) & 15; }

inline void copy_nibble(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d) {
  destination[d / 2] = static_cast<uint8_t>(destination[d / 2] | nibble_at(source, s) << (d % 2 * 4));
}

// Any run.
inline void copy_nibbles(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count) {
  if (count > 0 && d % 2 != 0) {
    copy_nibble(source, s++, destination, d++);
    --count;
  }
  const int64_t pairs = count / 2;
  uint8_t* to = destination + d / 2;
  const uint8_t* from = source + s / 2;
  if (s % 2 == 0) {
    if (pairs > 0) std::memcpy(to, from, static_cast<size_t>(pairs));
  } else {
    int64_t i = 0;
    for (; i + 16 <= pairs; i += 16) {
      store_bytes16(to + i, (load_bytes16(from + i) >> 4) | (load_bytes16(from + i + 1) << 4));
    }
    for (; i < pairs; ++i) to[i] = static_cast<uint8_t>(from[i] >> 4 | from[i + 1] << 4);
  }
  if (count % 2 != 0) copy_nibble(source, s + count - 1, destination, d + count - 1);
}

// The element of nests with long runs.
struct NibbleRuns {
  static constexpr bool kWritesZeros = false;
  static void copy_run(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count) {
    copy_nibbles(source, s, destination, d, count);
  }
  static void copy_one(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d) {
    copy_nibble(source, s, destination, d);
  }
  static void zero_run(uint8_t*, int64_t, int64_t) {}
};

class NibbleMover {
 public:
  NibbleMover(const ReorderArguments& arguments, size_t nest, TransposeNibbles transpose_nibbles,
              int64_t begin, int64_t end)
      : source_(arguments.source),
        destination_(arguments.destination),
        stage_(arguments.plan.stage(nest)),
        transpose_(arguments.plan.transpose(nest)),
        transpose_nibbles_(transpose_nibbles),
        nest_(arguments.plan.nests()[nest]),
        box_(*arguments.plan.box(nest)),
        begin_(begin),
        end_(end),
        packed_(stage_ == nullptr ? 0 : static_cast<size_t>(stage_->packed)),
        bytes_(static_cast<size_t>(box_.elements())) {}

  // Elements [first, first + count) of the box, side by side in the destination.
  struct Run {
    int64_t first;
    int64_t count;
  };

  struct Moves {
    // Empty where the box is full and goes by rectangles.
    BoxMoves moves;
    std::vector<Run> writes;
    // 15 for elements that have a source, else 0; empty where all have.
    std::vector<uint8_t> mask;
    // Elements of the box, one for each move.
    std::vector<int32_t> places;
    // From the first to behind the last element of the source.
    int64_t source_begin;
    int64_t source_end;

    bool is_listed() const { return !moves.elements.empty(); }
    bool empty() const { return is_listed() && moves.empty(); }
  };

  void list(Moves& made, const LoopNest& nest, const NestBox& box, const BoxState& state) const {
    made = {};
    if (transpose_ == nullptr || !is_full(nest, box, state)) list_all(made, state);
  }

  void move(const Moves& made, int64_t s, int64_t d) {
    if (made.is_listed()) return move_listed(made, s, d);
    const bool is_whole = d + box_.destination.front() >= begin_ && d + box_.destination.back() < end_;
    const bool has_bytes = s % 2 == 0 && d % 2 == 0 && begin_ % 2 == 0;
    if (is_whole && has_bytes) return move_transposed(s, d);
    if (!full_.is_listed()) list_all(full_, state_of_full(box_));
    move_listed(full_, s, d);
  }

 private:
  void list_all(Moves& made, const BoxState& state) const {
    made.moves.list(nest_, box_, state);
    const std::vector<BoxElement>& elements = made.moves.elements;
    for (size_t k = 0; k < elements.size(); ++k) {
      if (elements[k] == BoxElement::kMoved) made.places.push_back(static_cast<int32_t>(k));
      if (elements[k] == BoxElement::kKept) continue;
      const bool goes_on = !made.writes.empty() &&
                           made.writes.back().first + made.writes.back().count == static_cast<int64_t>(k) &&
                           box_.destination[k] == box_.destination[k - 1] + 1;
      if (goes_on) {
        ++made.writes.back().count;
      } else {
        made.writes.push_back({static_cast<int64_t>(k), 1});
      }
    }
    if (made.places.size() < elements.size()) {
      for (BoxElement element : elements) made.mask.push_back(element == BoxElement::kMoved ? 15 : 0);
    }
    set_hull(made, 0, made.places.size(), made.source_begin, made.source_end);
  }

  void move_listed(const Moves& made, int64_t s, int64_t d) {
    const int64_t last = made.writes.back().first + made.writes.back().count - 1;
    const bool is_whole = d + place(made.writes.front().first) >= begin_ && d + place(last) < end_;
    size_t first_move = 0;
    size_t last_move = made.places.size();
    int64_t source_begin = made.source_begin;
    int64_t source_end = made.source_end;
    if (!is_whole) {
      const std::vector<int32_t>& places = made.moves.destination;
      first_move =
          static_cast<size_t>(std::lower_bound(places.begin(), places.end(), begin_ - d) - places.begin());
      last_move =
          static_cast<size_t>(std::lower_bound(places.begin(), places.end(), end_ - d) - places.begin());
      set_hull(made, first_move, last_move, source_begin, source_end);
    }
    // Nothing is written where all is zero.
    if (first_move >= last_move) return;
    if (stage_ != nullptr) {
      unpack(s, s + source_begin, s + source_end);
      stage_->plan->run(packed_.data(), bytes_.data(), 0, box_.elements());
    } else {
      gather(made, s, first_move, last_move);
    }
    for (size_t k = 0; k < made.mask.size(); ++k) bytes_[k] &= made.mask[k];
    for (const Run& run : made.writes) pack(run, d, is_whole);
  }

  int64_t place(int64_t element) const { return box_.destination[static_cast<size_t>(element)]; }

  static void set_hull(const Moves& made, size_t first, size_t last, int64_t& begin, int64_t& end) {
    begin = end = 0;
    if (first >= last) return;
    const auto [low, high] =
        std::minmax_element(made.moves.source.begin() + static_cast<std::ptrdiff_t>(first),
                            made.moves.source.begin() + static_cast<std::ptrdiff_t>(last));
    begin = made.moves.source_base + *low;
    end = made.moves.source_base + *high + 1;
  }

  // Of the source's runs, what lies between the first and the last element that is needed: beyond them there
  // may be no memory.
  void unpack(int64_t s, int64_t source_begin, int64_t source_end) {
    for (const StageRun& run : stage_->runs) {
      const int64_t first = s + run.source;
      uint8_t* to = packed_.data() + run.packed;
      if (run.step == 1) {
        const int64_t begin = std::max(first, source_begin);
        const int64_t end = std::min(first + run.count, source_end);
        if (begin < end) unpack_nibbles(source_, begin, to + (begin - first), end - begin);
        continue;
      }
      const int64_t step = run.step;
      // The passes that reach what is needed.
      const int64_t behind = step > 0 ? source_end - first : first - source_begin + 1;
      const int64_t before = step > 0 ? source_begin - first : first - source_end + 1;
      const int64_t begin = std::clamp(ceil_div(before, std::abs(step)), int64_t{0}, run.count);
      const int64_t end = std::clamp(ceil_div(behind, std::abs(step)), begin, run.count);
      unpack_steps(first + begin * step, step, to + begin, end - begin);
    }
  }

  // Small steps by way of all that lies between.
  void unpack_steps(int64_t first, int64_t step, uint8_t* to, int64_t count) {
    constexpr int64_t kLongStep = 8;
    constexpr int64_t kAtOnce = 128;
    if (std::abs(step) > kLongStep) {
      for (int64_t i = 0; i < count; ++i) to[i] = nibble_at(source_, first + i * step);
      return;
    }
    uint8_t window[kAtOnce * kLongStep];
    for (int64_t i = 0; i < count; i += kAtOnce) {
      const int64_t part = std::min(kAtOnce, count - i);
      const int64_t one = first + i * step;
      const int64_t other = one + (part - 1) * step;
      const int64_t low = std::min(one, other);
      unpack_nibbles(source_, low, window, std::abs(other - one) + 1);
      copy_strided<uint8_t>(window + (one - low), step, to + i, part);
    }
  }

  void move_transposed(int64_t s, int64_t d) {
    const NibblePlaces places = transpose_->nibble_places();
    for (const BoxTranspose::Rectangle& rectangle : transpose_->rectangles) {
      transpose_nibbles_(places, source_ + s / 2 + rectangle.source,
                         destination_ + (d - begin_) / 2 + rectangle.destination, bytes_.data());
    }
  }

  void gather(const Moves& made, int64_t s, size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const int64_t from = s + made.moves.source_base + made.moves.source[i];
      bytes_[static_cast<size_t>(made.places[i])] = nibble_at(source_, from);
    }
  }

  void pack(const Run& run, int64_t d, bool is_whole) {
    int64_t at = d + place(run.first);
    int64_t first = 0;
    int64_t count = run.count;
    if (!is_whole) {
      first = std::clamp(begin_ - at, int64_t{0}, count);
      count = std::clamp(end_ - at, first, count) - first;
      at += first;
    }
    pack_nibbles(bytes_.data() + run.first + first, destination_, at - begin_, count);
  }

  const uint8_t* source_;
  uint8_t* destination_;
  const BoxStage* stage_;
  const BoxTranspose* transpose_;
  TransposeNibbles transpose_nibbles_;
  const LoopNest& nest_;
  const NestBox& box_;
  int64_t begin_;
  int64_t end_;
  // The source of a box, a byte an element, packed and as the destination has it.
  std::vector<uint8_t> packed_;
  std::vector<uint8_t> bytes_;
  // The moves of a full box that the range cuts, once there is one.
  Moves full_;
};

// Shorter runs cost more to walk than to move by boxes.
constexpr int64_t kLongNibbleRun = 64;

inline bool has_long_runs(const LoopNest& nest) {
  const Node& inner = nest.nodes.back();
  return inner.source_stride == 1 && inner.destination_stride == 1 && inner.lookup == kNone &&
         inner.below == 0 && inner.count >= kLongNibbleRun;
}

}  // namespace
}  // namespace tilework
