// Comparisons of numbers for AVX2.
#include "dtype/difference_kernels.h"
#include "dtype/difference_numbers.h"

namespace tilework {

template <class Number>
RunDifferences compare_numbers_avx2(const Number* reference, const Number* other, int64_t count,
                                    const Tolerance& tolerance) {
  return compare_by_lanes(reference, other, count, tolerance);
}

#define TILEWORK_INSTANTIATE_kAvx2(number)                                                    \
  template RunDifferences compare_numbers_avx2<number>(const number*, const number*, int64_t, \
                                                       const Tolerance&);
#define TILEWORK_INSTANTIATE_kPortable(number)
#define TILEWORK_DIFFERENCE_KERNEL(number, isa) TILEWORK_INSTANTIATE_##isa(number)
#include "dtype/differences.def"
#undef TILEWORK_DIFFERENCE_KERNEL

}  // namespace tilework
