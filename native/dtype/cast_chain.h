// Casts and scalings one after the other, as one pass over memory. Each rounds for itself: a chain is what
// its user asked for step by step, not a short cut.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtype/scaling.h"

namespace tilework {

class CastChain {
 public:
  // At least one; each takes what the one before it gives. Errors: ERR_ARGUMENT.
  explicit CastChain(std::vector<ElementStep> steps);

  const std::vector<ElementStep>& steps() const { return steps_; }
  Dtype from() const;
  Dtype to() const;
  // Elements that fill whole bytes on both sides.
  int64_t whole_elements() const;
  // Whether the element whose bits are all zero stays one. Not so where a type has no zero, or where
  // something is added.
  bool keeps_zero_bits() const;
  // Whether what becomes of an element depends on its place.
  bool depends_on_place() const;
  // Bytes of the parameters of its scalings.
  int64_t footprint() const;
  std::string kernels() const;

  // As Cast::run, of elements of which the first is element `first` of the result.
  void run(const uint8_t* source, uint8_t* destination, int64_t first, int64_t count,
           Stores stores = Stores::kCached) const;

 private:
  std::vector<ElementStep> steps_;
  // So many go through all steps at a time.
  int64_t block_elements_;
};

}  // namespace tilework
