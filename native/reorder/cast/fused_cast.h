// A reorder whose elements change their type on the way: by the tile programs of the nests, whose panels are
// cast in the L1 cache (panel_conversion.h). Casts to fewer than 8 bits, and from 2 or 6, move the
// source's elements, a piece of the destination at a time, and cast them from there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtype/cast_chain.h"
#include "reorder/cast/panel_conversion.h"
#include "reorder/pixels.h"
#include "reorder/plan/plan.h"

namespace tilework {

class FusedCast {
 public:
  // `description` without its casts describes the moves. Errors: those of ReorderPlan; ERR_ARGUMENT where the
  // first cast does not take elements of the description's width.
  explicit FusedCast(const ReorderDescription& description);

  // From the source to the places of the destination, at the width of the source.
  const ReorderPlan& moves() const { return moves_; }
  // The programs that move and cast; none where the pieces of moves() are cast.
  std::span<const std::shared_ptr<const TileProgram>> programs() const { return programs_; }
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
  // As ReorderPlan::ways().
  WayShares ways(Stores stores) const;
  // Holes are zero, which the cast does not make of zeros: they have to be looked for.
  bool must_find_holes() const { return coverage_ != nullptr; }

  // Bytes of the moves that are the elements of destination bytes before `at`.
  int64_t moved_bytes(int64_t at) const;
  // As ReorderPlan::run.
  void run(const ReorderArguments& arguments) const;

 private:
  void run_wide(const ReorderArguments& all) const;
  void run_piece(const ReorderArguments& piece) const;
  bool is_cast_first() const;
  void make_programs();
  bool add_programs(PanelConversion::Order order);
  void run_programs(const ReorderArguments& all) const;
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
  // Null where there are no programs.
  std::unique_ptr<const PanelConversion> conversion_;
  std::vector<std::shared_ptr<const TileProgram>> programs_;
  std::unique_ptr<const ReorderPlan> coverage_;
};

}  // namespace tilework
