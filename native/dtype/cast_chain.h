// A sequence of casts and scalings as one pass over memory. Each step rounds by itself, as if the steps were
// separate calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtype/scaling.h"

namespace tilework {

class CastChain {
 public:
  // At least one step; each takes the type that the previous one gives. Errors: ERR_ARGUMENT.
  explicit CastChain(std::vector<ElementStep> steps);

  const std::vector<ElementStep>& steps() const { return steps_; }
  Dtype from() const;
  Dtype to() const;
  // Number of elements that fills whole bytes on both sides.
  int64_t whole_elements() const;
  // Whether an element with all bits zero stays so. False if a type has no zero or an offset is added.
  bool keeps_zero_bits() const;
  // Whether the conversion of an element depends on its position.
  bool depends_on_position() const;
  // Bytes of the parameters of all scalings.
  int64_t footprint() const;
  std::string kernels() const;

  // As Cast::run; the first element is element `first` of the result.
  void run(const uint8_t* source, uint8_t* destination, int64_t first, int64_t count,
           Stores stores = Stores::kCached) const;

 private:
  std::vector<ElementStep> steps_;
  // Number of elements that pass through all steps at a time.
  int64_t block_elements_;
};

}  // namespace tilework
