#include "parallel/thread_count.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif
#ifdef _WIN32
#define NOMINMAX
#include <windows.h>

#include <bit>
#endif

namespace tilework {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

size_t cpus_for(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return 0;
  return static_cast<size_t>(std::clamp(std::ceil(quota / period), 1.0, static_cast<double>(kMaxThreads)));
}

size_t smaller(size_t a, size_t b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

// cgroup v2: "max 100000" or "50000 100000".
size_t quota_v2(const std::string& folder) {
  const std::string line = first_line(folder + "/cpu.max");
  const size_t space = line.find(' ');
  if (space == std::string::npos) return 0;
  return cpus_for(std::atof(line.c_str()), std::atof(line.c_str() + space + 1));
}

// cgroup v1: two files; a quota of -1 means none.
size_t quota_v1(const std::string& folder) {
  return cpus_for(std::atof(first_line(folder + "/cpu.cfs_quota_us").c_str()),
                  std::atof(first_line(folder + "/cpu.cfs_period_us").c_str()));
}

// A group and each of its ancestors may have a quota; the smallest applies. In a container the path of the
// group often does not exist below the mount, whose root is then the group.
template <class Quota>
size_t smallest_quota(const std::string& mount, std::string group, Quota quota) {
  size_t result = quota(mount);
  while (group.size() > 1 && group.starts_with('/')) {
    result = smaller(result, quota(mount + group));
    group.resize(group.rfind('/'));
  }
  return result;
}

bool names_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

#ifdef _WIN32
// Containers are jobs with a hard limit, in hundredths of a percent of all processors.
size_t job_threads() {
  JOBOBJECT_CPU_RATE_CONTROL_INFORMATION limit{};
  if (QueryInformationJobObject(nullptr, JobObjectCpuRateControlInformation, &limit, sizeof(limit),
                                nullptr) == 0) {
    return 0;
  }
  constexpr DWORD kHard = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
  if ((limit.ControlFlags & kHard) != kHard) return 0;
  return cpus_for(static_cast<double>(limit.CpuRate) * GetActiveProcessorCount(ALL_PROCESSOR_GROUPS), 10'000);
}
#endif

size_t affinity_threads() {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return static_cast<size_t>(CPU_COUNT(&set));
#elif defined(_WIN32)
  // Zeros for a process with threads in several groups of 64 processors.
  DWORD_PTR own = 0;
  DWORD_PTR all = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &own, &all) != 0 && own != 0)
    return smaller(static_cast<size_t>(std::popcount(static_cast<uint64_t>(own))), job_threads());
  return smaller(GetActiveProcessorCount(ALL_PROCESSOR_GROUPS), job_threads());
#endif
  return std::thread::hardware_concurrency();
}

}  // namespace

size_t quota_threads(const std::string& root) {
  size_t result = 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  // hierarchy:controllers:path; cgroup v2 is hierarchy 0 without controllers.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      result = smaller(result, smallest_quota(root + "/sys/fs/cgroup", group, quota_v2));
    } else if (names_cpu(controllers)) {
      result = smaller(result, smallest_quota(root + "/sys/fs/cgroup/cpu", group, quota_v1));
    }
  }
  return result;
}

size_t parse_threads(const char* text) {
  if (text == nullptr) return 0;
  size_t count = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, count);
  return error == std::errc() && stop == end && count <= kMaxThreads ? count : 0;
}

size_t default_threads() {
  const size_t asked = parse_threads(std::getenv("TILEWORK_THREADS"));
  if (asked > 0) return asked;
  return std::clamp<size_t>(smaller(affinity_threads(), quota_threads("")), 1, kMaxThreads);
}

}  // namespace tilework
