// Reserved addresses without memory: filled ranges are readable, the others read as zeros, and clear()
// releases the memory.
#include "memory/sparse_buffer.h"

#include <cstring>
#include <fstream>
#include <string>

#include "check.h"

namespace tilework::test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Anonymous resident memory, or -1 where the system does not report it.
int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) * 1024;
  }
  return -1;
}

void fill(SparseBuffer& buffer, int64_t offset, int64_t size, int value) {
  std::memset(buffer.fill(offset, size), value, static_cast<size_t>(size));
}

void test_filling_and_clearing() {
  SparseBuffer buffer(int64_t{1} << 40);
  const int64_t before = anonymous_bytes();
  for (int64_t i = 0; i < 64; ++i)
    fill(buffer, i * (int64_t{1} << 34) + 12345, kMiB, static_cast<int>(i + 1));
  CHECK(buffer.data()[5 * (int64_t{1} << 34) + 12345 + kMiB - 1] == 6);
  CHECK(buffer.data()[5 * (int64_t{1} << 34) + 12345 + kMiB] == 0);
  if (before >= 0) CHECK(anonymous_bytes() - before < 80 * kMiB);
  buffer.clear();
  if (before >= 0) CHECK(anonymous_bytes() - before < 16 * kMiB);
  CHECK(buffer.data()[5 * (int64_t{1} << 34) + 12345] == 0);
  fill(buffer, 7, 3, 9);
  CHECK(buffer.data()[6] == 0 && buffer.data()[7] == 9 && buffer.data()[9] == 9 && buffer.data()[10] == 0);
}

// Ranges that share pages, in any order, are all released.
void test_neighbours() {
  SparseBuffer buffer(kMiB + 5);
  for (int64_t offset : {8000, 4000, 100, 4097, 12000, 0, 1048576}) fill(buffer, offset, 5, 1);
  buffer.clear();
  for (int64_t i = 0; i < buffer.size(); ++i) {
    if (buffer.data()[i] != 0) return CHECK(false);
  }
}

void test_limits() {
  SparseBuffer buffer(100);
  CHECK(code_of([&] { buffer.fill(0, 100); }).empty());
  CHECK(code_of([&] { buffer.fill(100, 0); }).empty());
  CHECK(code_of([&] { buffer.fill(99, 2); }) == "ERR_RANGE");
  CHECK(code_of([&] { buffer.fill(-1, 1); }) == "ERR_RANGE");
  CHECK(code_of([&] { buffer.fill(1, INT64_MAX); }) == "ERR_RANGE");
  SparseBuffer empty(0);
  CHECK(code_of([&] { empty.fill(0, 0); }).empty());
  empty.clear();
  CHECK(code_of([] { SparseBuffer huge((int64_t{1} << 53) - 1); }) == "ERR_LIMIT");
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_filling_and_clearing();
  test_neighbours();
  test_limits();
  return result();
}
