// The kernel table of kernels.def.
#pragma once

#include <span>

#include "reorder/plan.h"

namespace tilework {

#define TILEWORK_REORDER_KERNEL(name, bits, nest_class, isa, reason) \
  void name(const ReorderArguments& arguments);
#include "reorder/kernels.def"
#undef TILEWORK_REORDER_KERNEL

// Moves one nest of a plan, of elements of whole bytes, for destination elements [begin, end): what the
// gather kernels do with each nest, and all kernels with one that has another class than theirs.
void gather_nest(const ReorderArguments& arguments, size_t nest, int64_t begin, int64_t end);

// All kernels, fastest first.
std::span<const ReorderKernel> reorder_kernels();

// Whether a kernel can run a plan on this CPU.
bool fits(const ReorderKernel& kernel, const ReorderPlan& plan);

}  // namespace tilework
