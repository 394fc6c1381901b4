// A reorder plan: what is needed to write the storage of one layout from the storage of another. Planning
// checks everything once; a plan never changes afterwards and any number of threads may run it at the same
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layout/join.h"

namespace tilework {

struct ReorderDescription {
  // 4, 8, 16, 32, 64 or 128.
  int element_bits = 0;
  // Logical extents, one an axis.
  std::vector<int64_t> shape;
  // Bound to slice->shape where there is a slice.
  Side from;
  Side to;
  std::optional<Slice> slice = std::nullopt;
};

enum class NestClass {
  // Source and destination storage are equal byte for byte, and neither has holes.
  kIdentity,
  // The destination is one range of the source, byte for byte.
  kView,
  kLoopNest,
};

class ReorderPlan;

// What a kernel gets: the whole source, and the place of destination bytes [begin, end).
struct ReorderArguments {
  const ReorderPlan& plan;
  const uint8_t* source;
  uint8_t* destination;
  int64_t begin;
  int64_t end;
};

// One line of kernels.def.
struct ReorderKernel {
  const char* name;
  // 0: any.
  int element_bits;
  NestClass nest_class;
  void (*run)(const ReorderArguments&);
  const char* reason;
};

class ReorderPlan {
 public:
  // Errors: ERR_ARGUMENT, ERR_OVERFLOW, ERR_RANGE (see bind_side and bind_slice).
  explicit ReorderPlan(const ReorderDescription& description);
  // A part of another plan, as one finished nest that writes all of its destination.
  ReorderPlan(int element_bits, LoopNest nest, int64_t source_elements, int64_t destination_elements);

  int element_bits() const { return element_bits_; }
  int64_t source_elements() const { return source_elements_; }
  int64_t destination_elements() const { return destination_elements_; }
  // Bytes of the storage; 4-bit elements fill the low half of a byte first, the last half byte is zero.
  int64_t source_bytes() const { return source_bytes_; }
  int64_t destination_bytes() const { return destination_bytes_; }
  NestClass nest_class() const { return nest_class_; }
  // Byte of the source at which the destination begins, for identities and views.
  std::optional<int64_t> copy_offset() const { return copy_offset_; }
  const std::vector<LoopNest>& nests() const { return nests_; }
  const ReorderKernel& kernel() const { return *kernel_; }
  std::string reason() const;

  // Destination bytes [begin, end) lie in whole elements (whole bytes for 4 bit) inside the storage.
  // Errors: ERR_ARGUMENT.
  void check_range(int64_t begin, int64_t end) const;

  // Writes destination bytes [begin, end) to `destination`; `source` has all source_bytes(). Reads no byte of
  // the source outside the elements that belong there, and no hole.
  void run(const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end) const {
    if (begin < end) kernel_->run({*this, source, destination, begin, end});
  }

 private:
  int element_bits_;
  int64_t source_elements_;
  int64_t destination_elements_;
  int64_t source_bytes_;
  int64_t destination_bytes_;
  std::vector<LoopNest> nests_;
  std::optional<int64_t> copy_offset_;
  NestClass nest_class_;
  const ReorderKernel* kernel_;
};

}  // namespace tilework
