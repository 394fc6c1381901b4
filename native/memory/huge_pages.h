// Huge pages (2 MiB) under large results. Fresh memory has no pages yet: the first touch of each page faults,
// and the system finds and clears a page. With 4 KiB pages these faults take several times as long as the
// kernel that writes; huge pages fault 512 times less often.
#pragma once

#include <cstddef>

#include "facts/limits.h"

namespace tilework {

// Asks for huge pages under memory that is about to be overwritten completely. Acts only where the end of the
// memory has no pages yet, since existing pages would stay small. The ends that no huge page covers get their
// small pages in one call instead of one fault each. Never fails: without huge pages (other systems than
// Linux, or switched off) the memory stays as it is.
void prepare_pages(void* memory, size_t bytes);

}  // namespace tilework
