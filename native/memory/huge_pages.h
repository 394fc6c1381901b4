// Pages of 2 MiB under large results. Memory that the system has just given has no pages yet: each page that
// a kernel touches first is a fault in which the system finds and clears it. With pages of 4 KiB those faults
// take several times as long as the kernel; with huge ones there are 512 times fewer.
#pragma once

#include <cstddef>

#include "facts/limits.h"

namespace tilework {

// Asks for huge pages under memory that is about to be written all over. Only where it is a mapping of its
// own, untouched as far as can be told: pages that are there already would not become others. What lies
// beside the huge pages gets its small ones at once, in one call instead of a fault each. Never fails:
// without huge pages (elsewhere than on Linux, or where they are switched off) the memory is as before.
void prepare_pages(void* memory, size_t bytes);

}  // namespace tilework
