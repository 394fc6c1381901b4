// The instruction sets that kernels are compiled for, and the ones that this process may use.
//
// The environment variable TILEWORK_MAX_ISA forces a lower set than the CPU has: `portable` everywhere,
// `avx2`, `avx512` on x64, `neon` on 64-bit ARM. It is read once, when the first kernel is chosen. With it a
// wrong result or a slow case can be traced to the kernels of one instruction set.
#pragma once

#include <cstdint>

namespace tilework {

enum class Isa : uint8_t {
  // One element at a time, in plain C++: the definition of the result. Stands last in a table of kernels.
  kReference,
  // Plain C++ for the baseline of the architecture; compilers vectorise it.
  kPortable,
  // Together with F16C and FMA, which every mainstream CPU with AVX2 has.
  kAvx2,
  // F and BW.
  kAvx512,
  // Part of the baseline of 64-bit ARM.
  kNeon,
};

// "reference", "portable", "avx2", "avx512", "neon".
const char* name_of(Isa isa);

// Suffix of a kernel's name by native/NAMING.md: "_reference", "", "_avx2", "_avx512", "_neon".
const char* kernel_suffix(Isa isa);

// The widest set that kernels may use in this process. Errors: ERR_ARGUMENT for an unknown TILEWORK_MAX_ISA.
Isa best_isa();

// Whether kernels of `isa` may run in this process. Errors: as best_isa().
bool can_run(Isa isa);

// The lower of `best` and the set named `max`; null or empty means no limit. Errors: ERR_ARGUMENT for a name
// that this architecture does not have.
Isa limited_isa(Isa best, const char* max);

}  // namespace tilework
