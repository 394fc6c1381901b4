#include "cpu/features.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tilework {
namespace {

#if defined(__x86_64__)
// The builtins of Clang 15 do not know f16c. The operating system saves its registers if it saves those of
// avx.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool known = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0;
  return known && (ecx & bit_F16C) != 0 && __builtin_cpu_supports("avx");
}
#endif

std::vector<std::string> probe_features() {
  std::vector<std::string> features;
#if defined(__x86_64__)
  __builtin_cpu_init();
  // The builtin also checks that the operating system saves the wide registers.
  if (__builtin_cpu_supports("sse4.2")) features.push_back("sse4.2");
  if (__builtin_cpu_supports("avx")) features.push_back("avx");
  if (has_f16c()) features.push_back("f16c");
  if (__builtin_cpu_supports("fma")) features.push_back("fma");
  if (__builtin_cpu_supports("avx2")) features.push_back("avx2");
  if (__builtin_cpu_supports("avx512f")) features.push_back("avx512f");
  if (__builtin_cpu_supports("avx512bw")) features.push_back("avx512bw");
  if (__builtin_cpu_supports("avx512vl")) features.push_back("avx512vl");
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
