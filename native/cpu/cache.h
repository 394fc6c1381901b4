// The caches of this CPU, read once.
#pragma once

#include <cstdint>

namespace tilework {

// Bytes of the largest cache that one core reaches; a common size where the system does not tell.
int64_t last_level_cache_bytes();

}  // namespace tilework
