#include "layout/digits.h"

#include <algorithm>
#include <compare>
#include <string>

#include "error.h"
#include "io/checked_math.h"

namespace tilework {
namespace {

[[noreturn]] void refuse(const char* side, const std::string& sentence) {
  throw Error(ErrorCode::kArgument, std::string("In '") + side + "': " + sentence);
}

void check_digit(const Digit& digit, size_t rank, const char* side) {
  if (digit.axes.empty() || digit.axes.size() > rank)
    refuse(side, "a digit names " + std::to_string(static_cast<int64_t>(digit.axes.size())) +
                     " axes; the shape has " + std::to_string(static_cast<int64_t>(rank)) + ".");
  for (size_t i = 0; i < digit.axes.size(); ++i) {
    const int axis = digit.axes[i];
    if (axis < 0 || static_cast<size_t>(axis) >= rank)
      refuse(side, "a digit names axis " + std::to_string(axis) + "; the shape has " +
                       std::to_string(static_cast<int64_t>(rank)) + " axes.");
    if (std::count(digit.axes.begin(), digit.axes.end(), axis) > 1) {
      refuse(side, "a digit names axis " + std::to_string(axis) + " twice.");
    }
  }
  if (digit.radix < 0) refuse(side, "the radix " + std::to_string(digit.radix) + " of a digit is negative.");
  if (digit.weight < 1)
    refuse(side, "the weight " + std::to_string(digit.weight) + " of a digit is not positive.");
}

Dimset& dimset_of(std::vector<Dimset>& dimsets, const std::vector<int>& axes, const char* side) {
  for (Dimset& dimset : dimsets) {
    if (dimset.axes == axes) return dimset;
    for (int axis : axes) {
      if (std::find(dimset.axes.begin(), dimset.axes.end(), axis) != dimset.axes.end()) {
        refuse(side, "axis " + std::to_string(axis) + " is in two digits with different axes.");
      }
    }
  }
  dimsets.push_back(Dimset{axes, 1, {}});
  return dimsets.back();
}

// Tests for extents of 0 before it multiplies: the product of the other extents may overflow.
int64_t extent_of(const std::vector<int>& axes, const std::vector<int64_t>& padded) {
  if (std::any_of(axes.begin(), axes.end(), [&](int axis) { return padded[axis] == 0; })) return 0;
  int64_t extent = 1;
  for (int axis : axes) extent = checked_mul(extent, padded[axis], "The number of elements");
  return extent;
}

// Sorts the digits by weight and proves that they form a mixed radix: then no two indices share a slot.
void close_dimset(Dimset& dimset, const std::vector<int64_t>& padded, const char* side) {
  std::sort(dimset.digits.begin(), dimset.digits.end(),
            [](const PlacedDigit& a, const PlacedDigit& b) { return a.weight < b.weight; });
  for (const PlacedDigit& digit : dimset.digits) {
    if (digit.weight != dimset.slots) {
      refuse(side, "the weights of axis " + std::to_string(dimset.axes[0]) +
                       " do not form a mixed radix: a digit has weight " + std::to_string(digit.weight) +
                       " where " + std::to_string(dimset.slots) + " is expected.");
    }
    dimset.slots = checked_mul(dimset.slots, digit.radix, "The padded extent of an axis");
  }
  const int64_t extent = extent_of(dimset.axes, padded);
  if (extent > dimset.slots) {
    refuse(side, "the digits of axis " + std::to_string(dimset.axes[0]) + " hold " +
                     std::to_string(dimset.slots) + " index values; the shape needs " +
                     std::to_string(extent) + ".");
  }
}

BoundPiece bind_piece(const Piece& piece, const BoundSide& bound, const char* side) {
  const size_t rank = bound.padded.size();
  if (piece.digits.size() > kMaxDigits)
    refuse(side, "a piece has " + std::to_string(static_cast<int64_t>(piece.digits.size())) +
                     " digits; the limit is " + std::to_string(kMaxDigits) + ".");
  BoundPiece result{piece.axis, piece.lo, piece.hi, {}};
  const bool is_empty = std::any_of(piece.digits.begin(), piece.digits.end(),
                                    [](const Digit& digit) { return digit.radix == 0; });
  // Empty storage: no digit has a stride, and the product of the other radices may overflow.
  int64_t stride = is_empty ? 0 : 1;
  for (size_t i = piece.digits.size(); i-- > 0;) {
    const Digit& digit = piece.digits[i];
    check_digit(digit, rank, side);
    Dimset& dimset = dimset_of(result.dimsets, digit.axes, side);
    if (digit.radix != 1) dimset.digits.push_back({digit.weight, digit.radix, stride});
    stride = checked_mul(stride, digit.radix, "The number of storage elements");
  }
  if (stride != bound.elements) {
    refuse(side, "the digits span " + std::to_string(stride) + " slots; 'elements' is " +
                     std::to_string(bound.elements) + ".");
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    const int number = static_cast<int>(axis);
    const bool named =
        std::any_of(result.dimsets.begin(), result.dimsets.end(), [number](const Dimset& dimset) {
          return std::find(dimset.axes.begin(), dimset.axes.end(), number) != dimset.axes.end();
        });
    if (!named) result.dimsets.push_back(Dimset{{number}, 1, {}});
  }
  for (Dimset& dimset : result.dimsets) close_dimset(dimset, bound.padded, side);
  return result;
}

// Pieces must tile one axis from 0 to its end; then each slot belongs to exactly one piece.
void check_pieces(const BoundSide& bound, const char* side) {
  const BoundPiece& first = bound.pieces.front();
  int64_t end = 0;
  for (const BoundPiece& piece : bound.pieces) {
    if (piece.axis != first.axis || piece.lo != end || piece.hi <= piece.lo) {
      refuse(side, "the pieces must cover one axis from 0 in ascending order without gaps.");
    }
    end = piece.hi;
    if (bound.pieces.size() == 1) continue;
    for (const Dimset& dimset : piece.dimsets) {
      const bool named = std::find(dimset.axes.begin(), dimset.axes.end(), piece.axis) != dimset.axes.end();
      if (named && dimset.axes.size() > 1) refuse(side, "the axis of the pieces is fused with another axis.");
    }
  }
  // Of a fused axis no dimset says how long it is.
  if (!bound.padded.empty() && bound.padded[first.axis] > end) {
    refuse(side, "the pieces end at " + std::to_string(end) + "; the padded extent of the axis is " +
                     std::to_string(bound.padded[first.axis]) + ".");
  }
  for (const BoundPiece& piece : bound.pieces) {
    for (const Dimset& dimset : piece.dimsets) {
      if (dimset.axes.front() == piece.axis && dimset.slots > end) {
        refuse(side, "the pieces end at " + std::to_string(end) + "; the axis has " +
                         std::to_string(dimset.slots) + " slots.");
      }
    }
  }
}

bool is_named(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// The outermost digit of the axis that the pieces split; null if the axis has one slot.
const PlacedDigit* top_digit(const BoundPiece& piece) {
  for (const Dimset& dimset : piece.dimsets) {
    if (is_named(dimset.axes, piece.axis)) return dimset.digits.empty() ? nullptr : &dimset.digits.back();
  }
  return nullptr;
}

struct OuterDigit {
  std::vector<int> axes;
  PlacedDigit digit;

  auto operator<=>(const OuterDigit&) const = default;
};

std::vector<OuterDigit> outer_digits(const BoundPiece& piece, int64_t stride) {
  std::vector<OuterDigit> digits;
  for (const Dimset& dimset : piece.dimsets) {
    for (const PlacedDigit& digit : dimset.digits) {
      if (digit.stride >= stride) digits.push_back({dimset.axes, digit});
    }
  }
  std::sort(digits.begin(), digits.end());
  return digits;
}

// Every slot must belong to exactly one piece, or a run would leave destination bytes unwritten. So pieces
// may differ only inside the outermost digit of their axis, and each covers whole values of it.
void check_apart(const BoundSide& bound, const char* side) {
  if (bound.pieces.size() == 1) return;
  const BoundPiece& first = bound.pieces.front();
  const PlacedDigit* top = top_digit(first);
  for (const BoundPiece& piece : bound.pieces) {
    const bool whole = top != nullptr && piece.lo % top->weight == 0;
    if (whole && outer_digits(piece, top->stride) == outer_digits(first, top->stride)) continue;
    refuse(side, "the pieces share slots: up to the outermost digit of axis " + std::to_string(first.axis) +
                     " their digits must be equal, and their bounds multiples of its weight.");
  }
}

}  // namespace

BoundSide bind_side(const std::vector<int64_t>& shape, const Side& side, const char* name) {
  const size_t rank = shape.size();
  if (rank > kMaxPlannedAxes)
    refuse(name, "there are " + std::to_string(static_cast<int64_t>(rank)) + " axes; the limit is " +
                     std::to_string(kMaxPlannedAxes) + ".");
  if (side.lower.size() != rank || side.upper.size() != rank) {
    refuse(name,
           "'lower' and 'upper' must have one count for each of the " + std::to_string(rank) + " axes.");
  }
  if (side.pieces.empty() || side.pieces.size() > kMaxDigitLists) {
    refuse(name, "there are " + std::to_string(static_cast<int64_t>(side.pieces.size())) +
                     " pieces; there must be from 1 to " + std::to_string(kMaxDigitLists) + ".");
  }
  if (side.elements < 0 || side.elements > kMaxSafeInteger) throw_overflow("The number of storage elements");
  BoundSide bound{side.lower, {}, {}, side.elements};
  for (size_t axis = 0; axis < rank; ++axis) {
    if (shape[axis] < 0 || side.lower[axis] < 0 || side.upper[axis] < 0) {
      refuse(name, "an extent or padding of axis " + std::to_string(axis) + " is negative.");
    }
    const int64_t end = checked_add(side.lower[axis], shape[axis], "A padded extent");
    bound.padded.push_back(checked_add(end, side.upper[axis], "A padded extent"));
  }
  for (const Piece& piece : side.pieces) {
    if (piece.axis < 0 || (rank > 0 && static_cast<size_t>(piece.axis) >= rank) ||
        (rank == 0 && piece.axis != 0)) {
      refuse(name, "a piece names axis " + std::to_string(piece.axis) + "; the shape has " +
                       std::to_string(static_cast<int64_t>(rank)) + " axes.");
    }
    bound.pieces.push_back(bind_piece(piece, bound, name));
  }
  check_pieces(bound, name);
  if (bound.elements > 0) check_apart(bound, name);
  return bound;
}

}  // namespace tilework
