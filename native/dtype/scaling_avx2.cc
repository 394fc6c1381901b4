// Scalings for AVX2 and FMA. Only this file is compiled for them.
#include "dtype/scaling_numbers.h"
#include "dtype/scalings.h"

namespace tilework {

template <ScalingKind kind, Dtype from, Dtype to>
void scale_avx2(const ScalingArguments& arguments) {
  scale_by_loops<kind, from, to>(arguments);
}

#define TILEWORK_INSTANTIATE_kAvx2(kind, from, to) \
  template void scale_avx2<ScalingKind::kind, Dtype::from, Dtype::to>(const ScalingArguments&);
#define TILEWORK_INSTANTIATE_kPortable(kind, from, to)
#define TILEWORK_INSTANTIATE_kReference(kind, from, to)
#define TILEWORK_SCALING_KERNEL(kind, from, to, isa) TILEWORK_INSTANTIATE_##isa(kind, from, to)
#include "dtype/scalings.def"
#undef TILEWORK_SCALING_KERNEL

}  // namespace tilework
