// The reference of all reorder kernels: walks the nests loop by loop, moves runs and rows in the innermost
// one. It is right for every plan; faster kernels are tested against it.
#include <algorithm>
#include <cstring>
#include <vector>

#include "io/checked_math.h"
#include "reorder/kernels.h"

namespace tilework {
namespace {

struct Unit128 {
  uint64_t low;
  uint64_t high;
};

// Elements of whole bytes. Storage may start at any byte, so elements are moved by memcpy, which costs
// nothing.
template <class T>
struct Bytes {
  static constexpr bool kWritesZeros = true;
  static void copy_run(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count) {
    std::memcpy(destination + d * kSize, source + s * kSize, static_cast<size_t>(count * kSize));
  }
  static void copy_one(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d) {
    T value;
    std::memcpy(&value, source + s * kSize, sizeof(T));
    std::memcpy(destination + d * kSize, &value, sizeof(T));
  }
  static void zero_run(uint8_t* destination, int64_t d, int64_t count) {
    std::memset(destination + d * kSize, 0, static_cast<size_t>(count * kSize));
  }
  static constexpr int64_t kSize = sizeof(T);
};

// 4-bit elements, two a byte, low half first. The destination range is zeroed before the walk, so zeros need
// no work and a half is set by OR, whichever of the two comes first.
struct Nibbles {
  static constexpr bool kWritesZeros = false;
  static void copy_one(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d) {
    const unsigned value = (source[s / 2] >> (s % 2 * 4)) & 15u;
    destination[d / 2] = static_cast<uint8_t>(destination[d / 2] | (value << (d % 2 * 4)));
  }
  static void copy_run(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count) {
    int64_t i = 0;
    if (s % 2 == d % 2) {
      if (count > 0 && d % 2 != 0) copy_one(source, s + i++, destination, d);
      const int64_t pairs = (count - i) / 2;
      if (pairs > 0) std::memcpy(destination + (d + i) / 2, source + (s + i) / 2, static_cast<size_t>(pairs));
      i += pairs * 2;
    }
    for (; i < count; ++i) copy_one(source, s + i, destination, d + i);
  }
  static void zero_run(uint8_t*, int64_t, int64_t) {}
};

// Walks one nest for destination elements [begin, end). Offsets are in elements; `d` counts from element 0 of
// the destination storage, whose `begin` stands at `destination_`.
template <class Element>
class Walk {
 public:
  Walk(const LoopNest& nest, const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end)
      : nest_(nest),
        source_(source),
        destination_(destination),
        begin_(begin),
        end_(end),
        index_(nest.variables.size(), 0),
        lookup_index_(nest.lookups.size(), 0) {}

  void run() { descend(0, nest_.source_base, nest_.destination_base, nest_.all_zero); }

 private:
  // Passes [lo, hi) of a loop are inside the range and written; of these, [valid_lo, valid_hi) may have a
  // source.
  struct Passes {
    int64_t lo;
    int64_t hi;
    int64_t valid_lo;
    int64_t valid_hi;
  };

  Passes passes_of(const Node& node, int64_t d, bool dead) const {
    Passes passes{0, node.count, 0, node.count};
    if (node.variable != kNone) {
      const Variable& variable = nest_.variables[node.variable];
      const int64_t s = index_[node.variable];
      narrow(passes.lo, passes.hi, variable.write_lo, variable.write_hi, s, node);
      narrow(passes.valid_lo, passes.valid_hi, variable.valid_lo, variable.valid_hi, s, node);
    }
    const int64_t stride = node.destination_stride;
    if (d < begin_) passes.lo = std::max(passes.lo, floor_div(begin_ - d - node.span, stride) + 1);
    if (d + (passes.hi - 1) * stride >= end_) passes.hi = std::min(passes.hi, ceil_div(end_ - d, stride));
    if (dead) passes.valid_lo = passes.valid_hi = passes.lo;
    passes.valid_lo = std::clamp(passes.valid_lo, passes.lo, std::max(passes.lo, passes.hi));
    passes.valid_hi = std::clamp(passes.valid_hi, passes.valid_lo, std::max(passes.valid_lo, passes.hi));
    return passes;
  }

  // Cuts [lo, hi) to the passes whose index may reach into [bound_lo, bound_hi); exact in the variable's last
  // loop.
  static void narrow(int64_t& lo, int64_t& hi, int64_t bound_lo, int64_t bound_hi, int64_t s,
                     const Node& node) {
    if (s + node.below < bound_lo) lo = std::max(lo, ceil_div(bound_lo - s - node.below, node.weight));
    if (s + (hi - 1) * node.weight >= bound_hi) hi = std::min(hi, ceil_div(bound_hi - s, node.weight));
  }

  void descend(size_t level, int64_t s, int64_t d, bool dead) {
    const Node& node = nest_.nodes[level];
    const Passes passes = passes_of(node, d, dead);
    if (passes.lo >= passes.hi) return;
    zero(level, d, passes.lo, passes.valid_lo);
    if (node.looks_up) {
      look_up(level, s, d, passes.valid_lo, passes.valid_hi);
    } else if (level + 1 == nest_.nodes.size()) {
      copy(node, s, d, passes.valid_lo, passes.valid_hi);
    } else {
      for (int64_t i = passes.valid_lo; i < passes.valid_hi; ++i)
        pass(level, i, s + i * node.source_stride, d, false);
    }
    zero(level, d, passes.valid_hi, passes.hi);
  }

  // One pass of a loop that is not the innermost.
  void pass(size_t level, int64_t i, int64_t s, int64_t d, bool dead) {
    const Node& node = nest_.nodes[level];
    const int64_t step = i * node.weight;
    const int64_t lookup_step = i * node.lookup_stride;
    if (node.variable != kNone) index_[node.variable] += step;
    if (node.lookup != kNone) lookup_index_[node.lookup] += lookup_step;
    descend(level + 1, s, d + i * node.destination_stride, dead);
    if (node.variable != kNone) index_[node.variable] -= step;
    if (node.lookup != kNone) lookup_index_[node.lookup] -= lookup_step;
  }

  // A loop in which the source offset becomes known only with each pass.
  void look_up(size_t level, int64_t s, int64_t d, int64_t lo, int64_t hi) {
    const Node& node = nest_.nodes[level];
    const Lookup& lookup = nest_.lookups[node.lookup];
    const bool innermost = level + 1 == nest_.nodes.size();
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t offset = lookup.at(lookup_index_[node.lookup] + i * node.lookup_stride);
      if (offset == kSkip) continue;
      if (offset == kHole) {
        zero(level, d, i, i + 1);
      } else if (innermost) {
        copy_one(s + i * node.source_stride + offset, d + i * node.destination_stride);
      } else {
        pass(level, i, s + i * node.source_stride + offset, d, false);
      }
    }
  }

  // Zeros in passes [lo, hi). The innermost loop is always a run: some digit of the destination has stride 1.
  void zero(size_t level, int64_t d, int64_t lo, int64_t hi) {
    if (!Element::kWritesZeros || lo >= hi) return;
    const Node& node = nest_.nodes[level];
    if (node.dense && node.span == node.destination_stride) {
      const int64_t first = std::max(d + lo * node.span, begin_);
      const int64_t last = std::min(d + hi * node.span, end_);
      if (first < last) Element::zero_run(destination_, first - begin_, last - first);
    } else {
      for (int64_t i = lo; i < hi; ++i) pass(level, i, 0, d, true);
    }
  }

  // The innermost loop: a run, or a row with strides.
  void copy(const Node& node, int64_t s, int64_t d, int64_t lo, int64_t hi) {
    if (lo >= hi) return;
    if (node.source_stride == 1 && node.destination_stride == 1) {
      Element::copy_run(source_, s + lo, destination_, d + lo - begin_, hi - lo);
      return;
    }
    for (int64_t i = lo; i < hi; ++i) copy_one(s + i * node.source_stride, d + i * node.destination_stride);
  }

  void copy_one(int64_t s, int64_t d) { Element::copy_one(source_, s, destination_, d - begin_); }

  const LoopNest& nest_;
  const uint8_t* source_;
  uint8_t* destination_;
  int64_t begin_;
  int64_t end_;
  std::vector<int64_t> index_;
  std::vector<int64_t> lookup_index_;
};

template <class Element>
void walk_nests(const ReorderArguments& arguments, int64_t begin, int64_t end) {
  for (const LoopNest& nest : arguments.plan.nests()) {
    Walk<Element>(nest, arguments.source, arguments.destination, begin, end).run();
  }
}

template <class T>
void walk_bytes(const ReorderArguments& arguments) {
  constexpr int64_t size = sizeof(T);
  walk_nests<Bytes<T>>(arguments, arguments.begin / size, arguments.end / size);
}

}  // namespace

void copy_reference(const ReorderArguments& a) {
  const int64_t begin = *a.plan.copy_offset() + a.begin;
  std::memcpy(a.destination, a.source + begin, static_cast<size_t>(a.end - a.begin));
}

void reorder_x4_reference(const ReorderArguments& a) {
  std::memset(a.destination, 0, static_cast<size_t>(a.end - a.begin));
  walk_nests<Nibbles>(a, a.begin * 2, std::min(a.end * 2, a.plan.destination_elements()));
}

void reorder_x8_reference(const ReorderArguments& a) { walk_bytes<uint8_t>(a); }
void reorder_x16_reference(const ReorderArguments& a) { walk_bytes<uint16_t>(a); }
void reorder_x32_reference(const ReorderArguments& a) { walk_bytes<uint32_t>(a); }
void reorder_x64_reference(const ReorderArguments& a) { walk_bytes<uint64_t>(a); }
void reorder_x128_reference(const ReorderArguments& a) { walk_bytes<Unit128>(a); }

}  // namespace tilework
