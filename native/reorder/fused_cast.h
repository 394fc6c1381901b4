// A reorder whose elements change their type on the way. The elements of a piece of the destination are moved
// at the width they have in the source, into a buffer that stays in the caches, and cast from there; or,
// where they become narrower, cast into the buffer and moved from there, as narrow elements move faster. So
// every kernel that moves and every kernel that casts works with every other, and memory is gone over once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtype/cast_chain.h"
#include "reorder/pixels.h"
#include "reorder/plan.h"
#include "reorder/source_ranges.h"

namespace tilework {

class FusedCast {
 public:
  // `description` without its casts describes the moves. Errors: those of ReorderPlan; ERR_ARGUMENT where the
  // first cast does not take elements of the description's width.
  explicit FusedCast(const ReorderDescription& description);

  // From the source to the places of the destination, at the width of the source.
  const ReorderPlan& moves() const { return moves_; }
  // The same of elements that were cast before, at the width of the destination; null where these move first.
  const ReorderPlan* narrow_moves() const { return narrow_moves_.get(); }
  // Writes a byte of ones for each element, and zeros for holes; null where those need not be looked for.
  const ReorderPlan* coverage() const { return coverage_.get(); }
  const CastChain& cast() const { return cast_; }
  int64_t destination_bytes() const;
  // Ranges of the destination begin at multiples of this many bytes, so that they are whole bytes of the
  // moves too.
  int64_t range_quantum() const;
  int64_t range_unit(int64_t most) const;
  // Names of the kernels that run, moves first.
  std::string kernels() const;
  std::string reason() const;
  // Holes are zero, which the cast does not make of zeros: they have to be looked for.
  bool must_find_holes() const { return coverage_ != nullptr; }

  // Bytes of the moves that are the elements of destination bytes before `at`.
  int64_t moved_bytes(int64_t at) const;
  // As ReorderPlan::run.
  void run(const ReorderArguments& arguments) const;

 private:
  void run_wide(const ReorderArguments& all) const;
  void run_piece(const ReorderArguments& piece) const;
  void run_narrow(const ReorderArguments& all) const;
  bool run_narrow_piece(const ReorderArguments& piece) const;
  int64_t narrow_piece() const;
  // Of the source, for a range of destination bytes.
  std::vector<ByteRange> ranges_of(const ByteRange& destination) const;
  bool fits_narrow(const ByteRange& destination, const std::vector<ByteRange>& ranges) const;
  // Elements [first, last) of the result.
  struct Elements {
    int64_t first;
    int64_t last;
  };
  void run_cast(const uint8_t* source, uint8_t* destination, Elements elements, Stores stores) const;

  ReorderPlan moves_;
  CastChain cast_;
  // The kernel that moves and casts at once, or null.
  std::unique_ptr<const PixelCast> pixels_;
  // Null where elements move before they are cast.
  std::unique_ptr<const ReorderPlan> narrow_moves_;
  // Destination bytes that are cast and moved at a time.
  int64_t narrow_piece_ = 0;
  std::unique_ptr<const ReorderPlan> coverage_;
};

}  // namespace tilework
