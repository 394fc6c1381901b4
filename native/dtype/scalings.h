// The functions behind scalings.def: one template an instruction set, instantiated where its file is
// compiled.
#pragma once

#include "dtype/scaling.h"

namespace tilework {

template <ScalingKind kind, Dtype from, Dtype to>
void scale_portable(const ScalingArguments& arguments);
template <ScalingKind kind, Dtype from, Dtype to>
void scale_avx2(const ScalingArguments& arguments);
// One element at a time, with the operations of the C++ library.
template <ScalingKind kind, Dtype from, Dtype to>
void scale_reference(const ScalingArguments& arguments);

}  // namespace tilework
