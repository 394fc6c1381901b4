// The kernel table of kernels.def.
#pragma once

#include <span>

#include "reorder/plan/plan.h"

namespace tilework {

#define TILEWORK_REORDER_KERNEL(name, moves, isa, reason) void name(const ReorderArguments& arguments);
#include "reorder/kernels.def"
#undef TILEWORK_REORDER_KERNEL

// The leaves of each instruction set, and those of the widest that kernels may use.
const Leaves& leaves();
#if defined(__x86_64__)
const Leaves& leaves_avx2();
#elif defined(__aarch64__)
const Leaves& leaves_neon();
#endif
const Leaves& best_leaves();

// Moves the nests of a plan with the leaves of one instruction set: by the plan's programs if
// they were made with these leaves.
void run_programs(const ReorderArguments& arguments, const Leaves& leaves);

// All kernels, fastest first.
std::span<const ReorderKernel> reorder_kernels();

// Whether a kernel can run a plan on this CPU.
bool fits(const ReorderKernel& kernel, const ReorderPlan& plan);

}  // namespace tilework
