// Comparisons of numbers in portable C++.
#include "dtype/difference_kernels.h"
#include "dtype/difference_numbers.h"

namespace tilework {

template <class Number>
RunDifferences compare_numbers_portable(const Number* reference, const Number* other, int64_t count,
                                        const Tolerance& tolerance) {
  return compare_by_lanes(reference, other, count, tolerance);
}

#define TILEWORK_INSTANTIATE_kPortable(number)                                                    \
  template RunDifferences compare_numbers_portable<number>(const number*, const number*, int64_t, \
                                                           const Tolerance&);
#define TILEWORK_INSTANTIATE_kAvx2(number)
#define TILEWORK_DIFFERENCE_KERNEL(number, isa) TILEWORK_INSTANTIATE_##isa(number)
#include "dtype/differences.def"
#undef TILEWORK_DIFFERENCE_KERNEL

}  // namespace tilework
