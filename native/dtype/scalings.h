// The functions behind scalings.def: one template per instruction set, instantiated in the file that is
// compiled for it.
#pragma once

#include "dtype/scaling.h"

namespace tilework {

template <ScalingKind kind, Dtype from, Dtype to>
void scale_portable(const ScalingArguments& arguments);
template <ScalingKind kind, Dtype from, Dtype to>
void scale_avx2(const ScalingArguments& arguments);
// The exact reference: one element at a time, with the operations of the C++ library.
template <ScalingKind kind, Dtype from, Dtype to>
void scale_reference(const ScalingArguments& arguments);

}  // namespace tilework
