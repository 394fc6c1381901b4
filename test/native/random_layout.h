// Random layouts: any block sizes, any order of digits in memory, fused axes, rounding, padding, and layouts
// that store the end of an axis in another order. They exceed every named layout, so that the join meets all
// cases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "layout/digits.h"
#include "layout/slice.h"

namespace tilework::test {

// `Random` is a generator of the standard library, or the bytes of a fuzzer.
template <class Random>
class BasicRandomLayout {
 public:
  explicit BasicRandomLayout(Random& random) : random_(random) {}

  std::vector<int64_t> shape() {
    std::vector<int64_t> shape(static_cast<size_t>(below(5)) + (below(20) > 0 ? 1 : 0));
    for (int64_t& extent : shape) extent = below(6) == 0 ? below(2) : 1 + below(9);
    return shape;
  }

  Side side(const std::vector<int64_t>& shape) {
    Side side;
    const int64_t padding = below(3) == 0 ? 4 : 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      side.lower.push_back(below(padding));
      side.upper.push_back(below(padding));
    }
    std::vector<Digit> digits;
    for (const std::vector<int>& axes : axis_sets(shape.size())) append_digits(side, shape, axes, digits);
    if (below(3) > 0) std::shuffle(digits.begin(), digits.end(), random_);
    side.elements = 1;
    for (const Digit& digit : digits) side.elements *= digit.radix;
    side.pieces.push_back(Piece{0, 0, kMaxIndex, digits});
    if (below(4) == 0) split(side);
    return side;
  }

  // A slice with this resulting shape: whole axes, ranges, steps and reversals.
  Slice slice(const std::vector<int64_t>& shape) {
    Slice slice;
    for (int64_t extent : shape) {
      const int64_t size = below(3) == 0 ? 1 + below(4) : 1;
      const int64_t reach = std::max<int64_t>(extent - 1, 0) * size;
      const bool backwards = below(4) == 0;
      const int64_t before = below(3) == 0 ? below(9) : 0;
      const int64_t behind = below(3) == 0 ? below(9) : 0;
      slice.start.push_back(backwards ? before + reach : before);
      slice.step.push_back(backwards ? -size : size);
      slice.shape.push_back(before + (extent > 0 ? reach + 1 : 0) + behind);
    }
    return slice;
  }

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }

 private:
  static constexpr int64_t kMaxIndex = (int64_t{1} << 53) - 1;

  // Single axes, or a few axes fused in any order.
  std::vector<std::vector<int>> axis_sets(size_t rank) {
    std::vector<int> axes(rank);
    for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int>(i);
    if (below(6) == 0) std::shuffle(axes.begin(), axes.end(), random_);
    std::vector<std::vector<int>> sets;
    for (int axis : axes) {
      if (!sets.empty() && below(4) == 0) {
        sets.back().push_back(axis);
      } else {
        sets.push_back({axis});
      }
    }
    return sets;
  }

  void append_digits(const Side& side, const std::vector<int64_t>& shape, const std::vector<int>& axes,
                     std::vector<Digit>& digits) {
    int64_t extent = 1;
    for (int axis : axes) extent *= side.lower[axis] + shape[axis] + side.upper[axis];
    int64_t weight = 1;
    for (int64_t blocks = below(3); blocks > 0; --blocks) {
      static constexpr int64_t kBlocks[] = {1, 2, 2, 3, 4, 4, 8, 5};
      const int64_t block = kBlocks[below(8)];
      digits.insert(digits.begin(), Digit{axes, block, weight});
      weight *= block;
    }
    const int64_t top = (extent + weight - 1) / weight + (below(8) == 0 ? 1 : 0);
    if (top != 1 || extent == 0 || below(2) == 0) digits.insert(digits.begin(), Digit{axes, top, weight});
  }

  // Stores the end of one axis with another order of the digits inside the axis' outermost one.
  void split(Side& side) {
    const std::vector<Digit>& digits = side.pieces[0].digits;
    for (size_t i = 0; i < digits.size(); ++i) {
      const Digit& digit = digits[i];
      const bool is_top = std::none_of(digits.begin(), digits.end(), [&](const Digit& other) {
        return other.axes == digit.axes && other.weight > digit.weight;
      });
      if (digit.axes.size() != 1 || !is_top || digit.radix < 2) continue;
      const int64_t at = digit.weight * (1 + below(digit.radix - 1));
      Piece last{digit.axes[0], at, kMaxIndex, digits};
      std::shuffle(last.digits.begin() + static_cast<std::ptrdiff_t>(i) + 1, last.digits.end(), random_);
      side.pieces[0].axis = digit.axes[0];
      side.pieces[0].hi = at;
      side.pieces.push_back(last);
      return;
    }
  }

  Random& random_;
};

using RandomLayout = BasicRandomLayout<std::mt19937_64>;

}  // namespace tilework::test
