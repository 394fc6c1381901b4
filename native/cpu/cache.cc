#include "cpu/cache.h"

#if defined(__APPLE__)
#include <sys/sysctl.h>

#include <initializer_list>
#elif defined(_WIN32)
#define NOMINMAX
#include <windows.h>

#include <algorithm>
#include <vector>
#else
#include <unistd.h>

#include <fstream>
#include <string>
#endif

namespace tilework {
namespace {

// Fallback: most desktop and server cores reach a cache of at least this size.
constexpr int64_t kCommonBytes = int64_t{16} << 20;

#if defined(__APPLE__)
int64_t probe_cache() {
  for (const char* name : {"hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize"}) {
    int64_t bytes = 0;
    size_t size = sizeof(bytes);
    if (sysctlbyname(name, &bytes, &size, nullptr, 0) == 0 && bytes > 0) return bytes;
  }
  return kCommonBytes;
}
#elif defined(_WIN32)
int64_t probe_cache() {
  DWORD bytes = 0;
  GetLogicalProcessorInformation(nullptr, &bytes);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> entries(bytes /
                                                            sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  int64_t largest = 0;
  if (GetLogicalProcessorInformation(entries.data(), &bytes) != 0) {
    for (const auto& entry : entries) {
      if (entry.Relationship == RelationCache) largest = std::max<int64_t>(largest, entry.Cache.Size);
    }
  }
  return largest > 0 ? largest : kCommonBytes;
}
#else
// Reads a size such as "32768K"; 0 if the file is missing.
int64_t size_in(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  char unit = 0;
  if (!(file >> number) || number <= 0 || number > (int64_t{1} << 32)) return 0;
  file >> unit;
  if (unit == 'K') return number << 10;
  if (unit == 'M') return number << 20;
  return number;
}

int64_t probe_cache() {
  // sysconf comes second: on several CPUs it reports the sum over all L3 caches of the socket, although a
  // core reaches only one of them.
  int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    const int64_t bytes = size_in(folder + "/size");
    if (bytes > largest) largest = bytes;
  }
  if (largest > 0) return largest;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  for (int name : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long bytes = sysconf(name); bytes > 0) return bytes;
  }
#endif
  return kCommonBytes;
}
#endif

}  // namespace

int64_t last_level_cache_bytes() {
  static const int64_t bytes = probe_cache();
  return bytes;
}

}  // namespace tilework
