// How many threads this process may use: the CPUs it may run on, cut by the quota of its control group. A
// container with half a CPU on a machine of 96 gets 1, not 96.
#pragma once

#include <cstddef>
#include <string>

#include "facts/limits.h"

namespace tilework {

// TILEWORK_THREADS if it is a whole number from 1 to kMaxThreads, else what affinity and quota allow; at
// least 1.
size_t default_threads();

// CPUs that the quota of the control group pays for, rounded up; 0 without a quota. Versions 1 and 2. `root`
// stands before every path that is read.
size_t quota_threads(const std::string& root);

// A thread count written as text; 0 if it is none.
size_t parse_threads(const char* text);

}  // namespace tilework
