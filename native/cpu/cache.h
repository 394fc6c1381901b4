// Cache sizes of this CPU, probed once.
#pragma once

#include <cstdint>

namespace tilework {

// Bytes of a cache line on every CPU that has kernels here; half a line on Apple's.
inline constexpr int64_t kLineBytes = 64;

// Bytes of the largest cache that one core reaches; 16 MiB where the system does not report it.
int64_t last_level_cache_bytes();

}  // namespace tilework
