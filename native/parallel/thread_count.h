// Number of threads that this process may use: its CPU affinity, limited by its cgroup quota. A container
// with half a CPU on a machine with 96 gets 1, not 96.
#pragma once

#include <cstddef>
#include <string>

#include "facts/limits.h"

namespace tilework {

// TILEWORK_THREADS if it is a whole number from 1 to kMaxThreads, else the limit of affinity and quota; at
// least 1.
size_t default_threads();

// CPUs that the cgroup quota allows, rounded up; 0 without a quota. Reads v1 and v2; `root` is prepended to
// every path.
size_t quota_threads(const std::string& root);

// Parses a thread count; 0 if the text is not one.
size_t parse_threads(const char* text);

}  // namespace tilework
