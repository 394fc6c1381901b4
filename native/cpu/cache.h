// The caches of this CPU, read once.
#pragma once

#include <cstdint>

namespace tilework {

// Bytes of a cache line, or of a half of one, on every processor that there are kernels for.
inline constexpr int64_t kLineBytes = 64;

// Bytes of the largest cache that one core reaches; a common size where the system does not tell.
int64_t last_level_cache_bytes();

}  // namespace tilework
