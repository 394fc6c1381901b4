// prepare_pages keeps the content of memory of any size and alignment.
#include "memory/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

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
  return result();
}
