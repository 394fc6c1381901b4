// The kernel table of kernels.def.
#pragma once

#include <span>

#include "reorder/plan.h"

namespace tilework {

#define TILEWORK_REORDER_KERNEL(name, bits, nest_class, isa, reason) \
  void name(const ReorderArguments& arguments);
#include "reorder/kernels.def"
#undef TILEWORK_REORDER_KERNEL

// All kernels, fastest first.
std::span<const ReorderKernel> reorder_kernels();

// Whether a kernel can run a plan on this CPU.
bool fits(const ReorderKernel& kernel, const ReorderPlan& plan);

}  // namespace tilework
