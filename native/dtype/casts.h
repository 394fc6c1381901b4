// The functions behind casts.def: one template per instruction set, instantiated in the file that is compiled
// for it.
#pragma once

#include "dtype/cast.h"

namespace tilework {

template <Dtype from, Dtype to, CastRounding rounding>
void cast_portable(const CastArguments& arguments);
template <Dtype from, Dtype to, CastRounding rounding>
void cast_avx2(const CastArguments& arguments);
template <Dtype from, Dtype to, CastRounding rounding>
void cast_neon(const CastArguments& arguments);

}  // namespace tilework
