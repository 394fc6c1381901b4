// A reorder plan: what is needed to write the storage of one layout from the storage of another. Planning
// checks everything once; a plan never changes afterwards and any number of threads may run it at the same
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dtype/scaling.h"
#include "layout/join.h"
#include "memory/streaming_copy.h"
#include "reorder/plan/tile_program.h"

namespace tilework {

// What becomes of an element, as it is asked for. Blocks of a scaling are those of the slice's shape, where
// there is a slice.
using ElementChange = std::variant<Cast, ScalingDescription>;

struct ReorderDescription {
  // 4, 8, 16, 32, 64 or 128; 2 or 6 for elements that are cast and keep their order.
  int element_bits = 0;
  // Logical extents, one an axis.
  std::vector<int64_t> shape;
  // Bound to slice->shape where there is a slice.
  Side from;
  Side to;
  std::optional<Slice> slice = std::nullopt;
  // What becomes of the elements on the way. `to` has the elements of the last one.
  std::vector<ElementChange> casts = {};
};

class ReorderPlan;
class FusedCast;

// What a kernel gets: the whole source, and the place of destination bytes [begin, end).
struct ReorderArguments {
  const ReorderPlan& plan;
  const uint8_t* source;
  uint8_t* destination;
  int64_t begin;
  int64_t end;
  Stores stores = Stores::kCached;
  OuterRange part = {};
};

// What a kernel moves.
enum class Moves {
  // The destination as one range of the source, of elements of any size.
  kRange,
  // Tiles of elements of 4 or more bits.
  kTiles,
};

// One line of kernels.def.
struct ReorderKernel {
  const char* name;
  Moves moves;
  Isa isa;
  void (*run)(const ReorderArguments&);
  const char* reason;
};

class ReorderPlan {
 public:
  // Errors: ERR_ARGUMENT, ERR_OVERFLOW, ERR_RANGE (see bind_side and bind_slice).
  explicit ReorderPlan(const ReorderDescription& description);
  // A part of another plan, as finished nests that together write all of its destination.
  ReorderPlan(int element_bits, std::vector<LoopNest> nests, int64_t source_elements,
              int64_t destination_elements);

  int element_bits() const { return element_bits_; }
  int64_t source_elements() const { return source_elements_; }
  int64_t destination_elements() const { return destination_elements_; }
  // Bytes of the storage; elements below a byte fill its low bits first, and the unused bits
  // of the last one are zero.
  int64_t source_bytes() const { return source_bytes_; }
  int64_t destination_bytes() const { return destination_bytes_; }
  Moves moves() const { return copy_offset_ ? Moves::kRange : Moves::kTiles; }
  // Byte of the source from which the destination is a copy, but for unused bits at its end.
  std::optional<int64_t> copy_offset() const { return copy_offset_; }
  // The same where it has no unused bits: identities and views, which need no copy.
  std::optional<int64_t> view_offset() const { return unused_bits() == 0 ? copy_offset_ : std::nullopt; }
  const std::vector<LoopNest>& nests() const { return nests_; }
  // The programs of the nests; none for ranges.
  std::span<const std::shared_ptr<const TileProgram>> programs() const;
  const ReorderKernel& kernel() const { return *kernel_; }
  // The moves and casts of a plan that casts, whose own nests are none; else null.
  const FusedCast* cast() const { return cast_.get(); }
  std::string reason() const;
  // The same of a plan without casts that runs as these programs, one a nest, or none.
  std::string reason_of(std::span<const std::shared_ptr<const TileProgram>> programs) const;
  // Destination bytes by the way in which leaves move them; none where the destination is a copy. Of very
  // many panels the first ones are asked.
  WayShares ways(Stores stores) const;

  // Ranges of the destination begin and end at multiples of this many bytes, or end with the storage.
  int64_t range_quantum() const;
  // Destination bytes [begin, end) lie in whole elements (whole bytes for 4 bit) inside the storage.
  // Errors: ERR_ARGUMENT.
  void check_range(int64_t begin, int64_t end) const;

  // Ranges that begin and end at multiples of this many destination bytes, where there is a choice, leave
  // rectangles whole. At most `most`; 64 where that is too few for the plan.
  int64_t range_unit(int64_t most) const;

  // The stores for a caller that writes the whole destination from memory to memory, on so many threads.
  // `result_bytes` are those of a larger result that the destination is a part of.
  Stores stores_of_whole(size_t threads, int64_t result_bytes = 0) const;

  // Writes destination bytes [begin, end) to `destination`; `source` has all source_bytes(). Reads no byte of
  // the source outside the elements that belong there, but for up to 16 bytes beside one, between two of
  // them.
  void run(const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end,
           Stores stores = Stores::kCached) const {
    if (begin >= end) return;
    run({*this, source, destination, begin, end, stores});
  }
  // The same for a part of a plan of one program.
  void run(const ReorderArguments& arguments) const;

  // Zeros the bits behind the last element, of elements below a byte, where bytes [begin, end) end with it:
  // in a range of the source other elements may stand there, or anything.
  void clear_unused_bits(uint8_t* destination, int64_t begin, int64_t end) const;

 private:
  int64_t unused_bits() const;
  void choose_kernel();
  void make_programs();

  int element_bits_;
  int64_t source_elements_;
  int64_t destination_elements_;
  int64_t source_bytes_;
  int64_t destination_bytes_;
  std::vector<LoopNest> nests_;
  std::vector<std::shared_ptr<const TileProgram>> programs_;
  std::optional<int64_t> copy_offset_;
  const ReorderKernel* kernel_ = nullptr;
  std::shared_ptr<const FusedCast> cast_;
};

}  // namespace tilework
