#include "cpu/features.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tilework {
namespace {

#if defined(__x86_64__)
struct Registers {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
};

// Zeros for a leaf that this CPU does not have.
Registers cpuid(unsigned leaf, unsigned part = 0) {
  Registers registers;
  __get_cpuid_count(leaf, part, &registers.eax, &registers.ebx, &registers.ecx, &registers.edx);
  return registers;
}

// Which registers the operating system saves. In assembly, because the intrinsic needs a compiler option.
unsigned xgetbv() {
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Bits of XCR0: SSE and AVX; for AVX-512 also masks and both halves of its registers.
constexpr unsigned kAvxState = 0x06;
constexpr unsigned kAvx512State = 0xe6;
// Of leaf 7, part 1.
constexpr unsigned kAvx512Bfloat16 = 1 << 5;
#endif

// Asks the CPU itself. __builtin_cpu_supports needs tables of the compiler's runtime library, and that of
// some cross compilers has only a stub, which answers "no" to everything.
std::vector<std::string> probe_features() {
  std::vector<std::string> features;
#if defined(__x86_64__)
  const Registers basic = cpuid(1);
  const Registers extended = cpuid(7);
  const unsigned saved = (basic.ecx & bit_OSXSAVE) != 0 ? xgetbv() : 0;
  const bool avx = (saved & kAvxState) == kAvxState && (basic.ecx & bit_AVX) != 0;
  const bool avx512 = avx && (saved & kAvx512State) == kAvx512State;
  const auto add = [&](const char* name, bool usable) {
    if (usable) features.push_back(name);
  };
  add("sse4.2", (basic.ecx & bit_SSE4_2) != 0);
  add("avx", avx);
  add("f16c", avx && (basic.ecx & bit_F16C) != 0);
  add("fma", avx && (basic.ecx & bit_FMA) != 0);
  add("avx2", avx && (extended.ebx & bit_AVX2) != 0);
  add("avx512f", avx512 && (extended.ebx & bit_AVX512F) != 0);
  add("avx512dq", avx512 && (extended.ebx & bit_AVX512DQ) != 0);
  add("avx512bw", avx512 && (extended.ebx & bit_AVX512BW) != 0);
  add("avx512vl", avx512 && (extended.ebx & bit_AVX512VL) != 0);
  add("avx512vbmi", avx512 && (extended.ecx & bit_AVX512VBMI) != 0);
  add("avx512bf16", avx512 && (cpuid(7, 1).eax & kAvx512Bfloat16) != 0);
#elif defined(__aarch64__)
  features.push_back("neon");  // part of the architecture's baseline
#endif
  return features;
}

}  // namespace

const char* cpu_architecture() {
#if defined(__x86_64__)
  return "x64";
#elif defined(__aarch64__)
  return "arm64";
#else
  return "unknown";
#endif
}

const std::vector<std::string>& cpu_features() {
  static const std::vector<std::string>* features = new std::vector<std::string>(probe_features());
  return *features;
}

bool cpu_has(std::string_view feature) {
  const std::vector<std::string>& features = cpu_features();
  return std::find(features.begin(), features.end(), feature) != features.end();
}

}  // namespace tilework
