// Casts one after the other, as one pass over memory. Each rounds for itself: a chain is what its user asked
// for step by step, not a short cut.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtype/cast.h"

namespace tilework {

class CastChain {
 public:
  // At least one; each takes what the one before it gives. Errors: ERR_ARGUMENT.
  explicit CastChain(std::vector<Cast> casts);

  const std::vector<Cast>& casts() const { return casts_; }
  Dtype from() const { return casts_.front().from(); }
  Dtype to() const { return casts_.back().to(); }
  // Elements that fill whole bytes on both sides.
  int64_t whole_elements() const;
  // Whether the element whose bits are all zero stays one. Not so where a type has no zero.
  bool keeps_zero_bits() const;
  std::string kernels() const;

  // As Cast::run.
  void run(const uint8_t* source, uint8_t* destination, int64_t count) const;

 private:
  std::vector<Cast> casts_;
};

}  // namespace tilework
