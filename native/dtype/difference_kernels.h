// The functions behind differences.def: one template per instruction set, instantiated in the file that is
// compiled for it.
#pragma once

#include <cstdint>

#include "dtype/differences.h"

namespace tilework {

// What a kernel reports of a run of pairs. Where `is_finite` is false, nothing else holds.
struct RunDifferences {
  // Whether no number is infinite or NaN.
  bool is_finite = true;
  int64_t different = 0;
  int64_t beyond = 0;
  double largest_error = 0;
  double largest_relative_error = 0;
  double errors = 0;
  double squared_errors = 0;
  double squared_reference = 0;
  double squared_other = 0;
  double products = 0;
};

template <class Number>
RunDifferences compare_numbers_portable(const Number* reference, const Number* other, int64_t count,
                                        const Tolerance& tolerance);
template <class Number>
RunDifferences compare_numbers_avx2(const Number* reference, const Number* other, int64_t count,
                                    const Tolerance& tolerance);

}  // namespace tilework
