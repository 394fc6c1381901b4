#include "memory/huge_pages.h"

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace tilework {

#if defined(__linux__)
namespace {

#if defined(MADV_POPULATE_WRITE)
constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
// MADV_POPULATE_WRITE of Linux 5.14; older systems refuse it.
constexpr int kPopulate = 23;
#endif

bool is_resident(uintptr_t address, uintptr_t page) {
  unsigned char state = 0;
  return mincore(reinterpret_cast<void*>(address), page, &state) == 0 && (state & 1) != 0;
}

void populate(uintptr_t begin, uintptr_t end) {
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, kPopulate);
}

}  // namespace

void prepare_pages(void* memory, size_t bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory);
  if (bytes < kHugePageBytes) return;
  const uintptr_t begin = address / page * page;
  // The last page may hold other data already.
  const uintptr_t end = (address + bytes) / page * page;
  // Memory that an allocator recycles has its pages. Where it extends a heap, the end is fresh.
  if (is_resident(end - page, page)) return;
  if (madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE) != 0) return;
  const uintptr_t first = (begin + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const uintptr_t last = end / kHugePageBytes * kHugePageBytes;
  if (first >= last) {
    populate(begin, end);
  } else {
    populate(begin, first);
    populate(last, end);
  }
}
#else
void prepare_pages(void*, size_t) {}
#endif

}  // namespace tilework
