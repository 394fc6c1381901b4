// prepare_pages keeps the content of memory of any size and alignment, and asks for huge pages under fresh
// memory.
#include "memory/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "check.h"

namespace tilework::test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kMapped = 9 * kMiB;

class Mapping {
 public:
  Mapping() : memory_(mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0)) {}
  ~Mapping() { munmap(memory_, kMapped); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  uint8_t* data() const { return static_cast<uint8_t*>(memory_); }

 private:
  void* memory_;
};

void test_bytes_stay(size_t offset, size_t size) {
  const Mapping mapping;
  mapping.data()[0] = 1;
  mapping.data()[offset + size - 1] = 2;
  mapping.data()[kMapped - 1] = 3;
  prepare_pages(mapping.data() + offset, size);
  const bool reaches_end = offset + size == kMapped;
  CHECK(mapping.data()[0] == 1 && mapping.data()[kMapped - 1] == 3);
  CHECK(mapping.data()[offset + size - 1] == (reaches_end ? 3 : 2));
  size_t others = 0;
  for (size_t i = 1; i < kMapped - 1; ++i) others += mapping.data()[i] != 0 && i != offset + size - 1;
  CHECK(others == 0);
  std::memset(mapping.data() + offset, 7, size);
  CHECK(mapping.data()[offset] == 7 && mapping.data()[offset + size - 1] == 7);
}

#ifdef __linux__
// Whether the mapping that contains the address has the flag of MADV_HUGEPAGE.
bool has_huge_page_advice(const void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  std::ifstream smaps("/proc/self/smaps");
  bool is_inside = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      is_inside = begin <= address && address < end;
    if (is_inside && line.rfind("VmFlags:", 0) == 0) return line.find(" hg") != std::string::npos;
  }
  return false;
}

bool system_has_huge_pages() {
  const Mapping mapping;
  if (madvise(mapping.data(), kMapped, MADV_HUGEPAGE) == 0 && has_huge_page_advice(mapping.data()))
    return true;
  std::puts("skipped: this system has no huge pages, or does not list them in /proc/self/smaps");
  return false;
}

// A heap that is extended begins in the middle of a page that is in use.
void test_fresh_end_gets_huge_pages() {
  const Mapping mapping;
  mapping.data()[1000] = 1;
  prepare_pages(mapping.data() + 2000, 7 * kMiB);
  CHECK(has_huge_page_advice(mapping.data() + 4 * kMiB));
}

void test_recycled_memory_stays() {
  const Mapping mapping;
  std::memset(mapping.data(), 1, kMapped);
  prepare_pages(mapping.data() + 16, 7 * kMiB);
  CHECK(!has_huge_page_advice(mapping.data() + 4 * kMiB));
}
#endif

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  // As glibc allocates it; too small; unaligned within a page; up to the end of a mapping; less than one huge
  // page.
  test_bytes_stay(16, 7 * kMiB + 123);
  test_bytes_stay(16, kMiB);
  test_bytes_stay(2000, 4 * kMiB);
  test_bytes_stay(0, kMapped);
  test_bytes_stay(16, 2 * kMiB);
  tilework::prepare_pages(nullptr, 0);
#ifdef __linux__
  if (system_has_huge_pages()) {
    test_fresh_end_gets_huge_pages();
    test_recycled_memory_stays();
  }
#endif
  return result();
}
