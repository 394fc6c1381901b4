#include "cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

#include "cpu/features.h"
#include "error.h"

namespace tilework {
namespace {

// The sets of this architecture; each includes the ones before it.
#if defined(__x86_64__)
constexpr Isa kLadder[] = {Isa::kReference, Isa::kPortable, Isa::kAvx2, Isa::kAvx512};
#elif defined(__aarch64__)
constexpr Isa kLadder[] = {Isa::kReference, Isa::kPortable, Isa::kNeon};
#else
constexpr Isa kLadder[] = {Isa::kReference, Isa::kPortable};
#endif

Isa probe_isa() {
  const bool has_avx2 = cpu_has("avx2") && cpu_has("f16c") && cpu_has("fma");
  const bool has_avx512 = cpu_has("avx512f") && cpu_has("avx512bw");
  if (has_avx2) return has_avx512 ? Isa::kAvx512 : Isa::kAvx2;
  if (cpu_has("neon")) return Isa::kNeon;
  return Isa::kPortable;
}

// `reference` is not a valid limit: some reorders have no kernel that is marked as a reference.
constexpr const Isa* kLowestLimit = std::begin(kLadder) + 1;

}  // namespace

const char* name_of(Isa isa) {
  constexpr const char* kNames[] = {"reference", "portable", "avx2", "avx512", "neon"};
  return kNames[static_cast<size_t>(isa)];
}

const char* kernel_suffix(Isa isa) {
  constexpr const char* kSuffixes[] = {"_reference", "", "_avx2", "_avx512", "_neon"};
  return kSuffixes[static_cast<size_t>(isa)];
}

Isa limited_isa(Isa best, const char* max) {
  const std::string wanted = max == nullptr ? "" : max;
  if (wanted.empty()) return best;
  const Isa* limit =
      std::find_if(kLowestLimit, std::end(kLadder), [&](Isa isa) { return wanted == name_of(isa); });
  if (limit != std::end(kLadder)) return std::min(best, *limit);
  std::string known;
  for (const Isa* isa = kLowestLimit; isa != std::end(kLadder); ++isa)
    known += std::string(known.empty() ? "" : ", ") + name_of(*isa);
  throw Error(ErrorCode::kArgument,
              "TILEWORK_MAX_ISA is \"" + wanted + "\"; expected one of: " + known + ".");
}

Isa best_isa() {
  static const Isa best = limited_isa(probe_isa(), std::getenv("TILEWORK_MAX_ISA"));
  return best;
}

bool can_run(Isa isa) {
  return std::find(std::begin(kLadder), std::end(kLadder), isa) != std::end(kLadder) && isa <= best_isa();
}

}  // namespace tilework
