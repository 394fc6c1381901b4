// Reads reorders from text, which scripts/reorder_text.mjs makes from layout names:
//   element_bits  rank extents...  side side  sliced
// `sliced` is 0, or 1 followed by the slice of `from`: extents... start... step... A side is
//   lower... upper... elements  pieces { axis lo hi  digits { count axes... radix weight } }
#pragma once

#include <cstdint>
#include <istream>
#include <vector>

#include "reorder/plan/plan.h"

namespace tilework::test {

class DescriptionReader {
 public:
  explicit DescriptionReader(std::istream& input) : input_(input) {}

  ReorderDescription read() {
    ReorderDescription description;
    description.element_bits = static_cast<int>(number());
    const int64_t rank = number();
    description.shape = numbers(rank);
    description.from = side(rank);
    description.to = side(rank);
    if (number() == 1) {
      const std::vector<int64_t> whole = numbers(rank);
      const std::vector<int64_t> start = numbers(rank);
      description.slice = Slice{whole, start, numbers(rank)};
    }
    return description;
  }

 private:
  int64_t number() {
    int64_t value = 0;
    input_ >> value;
    return value;
  }

  std::vector<int64_t> numbers(int64_t count) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(number());
    return values;
  }

  Side side(int64_t rank) {
    Side side;
    side.lower = numbers(rank);
    side.upper = numbers(rank);
    side.elements = number();
    for (int64_t pieces = number(); pieces > 0; --pieces) side.pieces.push_back(piece());
    return side;
  }

  Piece piece() {
    Piece piece;
    piece.axis = static_cast<int>(number());
    piece.lo = number();
    piece.hi = number();
    for (int64_t digits = number(); digits > 0; --digits) {
      Digit digit;
      for (int64_t axis : numbers(number())) digit.axes.push_back(static_cast<int>(axis));
      digit.radix = number();
      digit.weight = number();
      piece.digits.push_back(digit);
    }
    return piece;
  }

  std::istream& input_;
};

}  // namespace tilework::test
