// The kernels of casts.def that run on any CPU.
#include "dtype/cast_numbers.h"
#include "dtype/casts.h"

namespace tilework {

template <Dtype from, Dtype to, CastRounding rounding>
void cast_baseline(const CastArguments& arguments) {
  cast_numbers<rounding, typename NumberOf<from>::Type, typename NumberOf<to>::Type>(arguments);
}

#define TILEWORK_INSTANTIATE_kBaseline(from, to, rounding) \
  template void cast_baseline<Dtype::from, Dtype::to, CastRounding::rounding>(const CastArguments&);
#define TILEWORK_INSTANTIATE_kAvx2(from, to, rounding)
#define TILEWORK_CAST_KERNEL(from, to, isa, rounding) TILEWORK_INSTANTIATE_##isa(from, to, rounding)
#include "dtype/casts.def"
#undef TILEWORK_CAST_KERNEL

}  // namespace tilework
