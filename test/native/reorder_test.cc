// Every plan against the oracle: random layouts, all element widths, whole and in ranges, on one thread and
// many. Buffers have the exact size, and holes of 8- and 16-byte sources are poisoned: under the address
// sanitizer a kernel that reads one is caught.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "check.h"
#include "oracle.h"
#include "random_layout.h"
#include "reorder/kernels.h"
#include "reorder/plan.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace tilework::test {
namespace {

// Larger ones only cost time.
constexpr int64_t kMaxElements = 20000;

struct Storage {
  explicit Storage(int64_t bytes) : size(bytes), data(new uint8_t[static_cast<size_t>(bytes)]) {}
  ~Storage() { ASAN_UNPOISON_MEMORY_REGION(data.get(), static_cast<size_t>(size)); }
  int64_t size;
  std::unique_ptr<uint8_t[]> data;
};

std::string describe(const Side& side) {
  std::string text;
  for (const Piece& piece : side.pieces) {
    text += " [axis " + std::to_string(piece.axis) + " from " + std::to_string(piece.lo) + ":";
    for (const Digit& digit : piece.digits) {
      text += " ";
      for (int axis : digit.axes) text += static_cast<char>('a' + axis);
      text += "/" + std::to_string(digit.weight) + "%" + std::to_string(digit.radix);
    }
    text += "]";
  }
  for (int64_t lower : side.lower) text += " -" + std::to_string(lower);
  for (int64_t upper : side.upper) text += " +" + std::to_string(upper);
  return text;
}

std::string describe(const ReorderDescription& description) {
  std::string text = "bits " + std::to_string(description.element_bits) + " shape";
  for (int64_t extent : description.shape) text += " " + std::to_string(extent);
  return text + " from" + describe(description.from) + " to" + describe(description.to);
}

void copy_element(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int bits) {
  if (bits >= 8) {
    std::memcpy(destination + d * (bits / 8), source + s * (bits / 8), static_cast<size_t>(bits / 8));
    return;
  }
  const int value = (source[s / 2] >> (s % 2 * 4)) & 15;
  destination[d / 2] = static_cast<uint8_t>(destination[d / 2] | (value << (d % 2 * 4)));
}

std::vector<uint8_t> expected_of(const ReorderDescription& description, const ReorderPlan& plan,
                                 const uint8_t* source) {
  std::vector<uint8_t> expected(static_cast<size_t>(plan.destination_bytes()), 0);
  const auto slots = slots_of(description.shape, description.to);
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    if (!slots[slot]) continue;
    const int64_t from = offset_of(description.shape, description.from, *slots[slot]);
    copy_element(source, from, expected.data(), static_cast<int64_t>(slot), description.element_bits);
  }
  return expected;
}

void poison_holes(const ReorderDescription& description, const Storage& source) {
  const int64_t unit = description.element_bits / 8;
  if (unit < 8) return;
  const auto slots = slots_of(description.shape, description.from);
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot]) continue;
    ASAN_POISON_MEMORY_REGION(source.data.get() + static_cast<int64_t>(slot) * unit,
                              static_cast<size_t>(unit));
  }
}

// The whole destination in random ranges, each into memory of its own.
void check_ranges(const ReorderDescription& description, const ReorderPlan& plan, const Storage& source,
                  const std::vector<uint8_t>& expected, RandomLayout& layouts) {
  const int64_t unit = std::max(description.element_bits / 8, 1);
  int64_t begin = 0;
  while (begin < plan.destination_bytes()) {
    const int64_t end = std::min(begin + unit * (1 + layouts.below(200)), plan.destination_bytes());
    const Storage part(end - begin);
    std::memset(part.data.get(), 0xA5, static_cast<size_t>(part.size));
    plan.run(source.data.get(), part.data.get(), begin, end);
    const bool equal =
        std::memcmp(part.data.get(), expected.data() + begin, static_cast<size_t>(part.size)) == 0;
    CHECK_IN(describe(description) + " range " + std::to_string(begin) + ".." + std::to_string(end), equal);
    begin = end;
  }
}

void check_reorder(const ReorderDescription& description, std::mt19937_64& random) {
  RandomLayout layouts(random);
  const ReorderPlan plan(description);
  const Storage source(plan.source_bytes());
  for (int64_t i = 0; i < source.size; ++i) source.data[i] = static_cast<uint8_t>(random());
  const std::vector<uint8_t> expected = expected_of(description, plan, source.data.get());
  poison_holes(description, source);
  const Storage destination(plan.destination_bytes());
  std::memset(destination.data.get(), 0xA5, static_cast<size_t>(destination.size));
  plan.run(source.data.get(), destination.data.get(), 0, plan.destination_bytes());
  const bool equal = std::equal(expected.begin(), expected.end(), destination.data.get());
  CHECK_IN(describe(description), equal);
  check_ranges(description, plan, source, expected, layouts);
}

void test_random_layouts(int rounds) {
  std::mt19937_64 random(20240117);
  RandomLayout layouts(random);
  static constexpr int kBits[] = {4, 8, 16, 32, 64, 128};
  for (int i = 0; i < rounds && failures < 10; ++i) {
    ReorderDescription description;
    description.element_bits = kBits[i % 6];
    description.shape = layouts.shape();
    description.from = layouts.side(description.shape);
    description.to = layouts.side(description.shape);
    if (description.from.elements > kMaxElements || description.to.elements > kMaxElements) continue;
    check_reorder(description, random);
  }
}

Side row_major(const std::vector<int64_t>& shape) {
  Side side;
  side.lower.assign(shape.size(), 0);
  side.upper.assign(shape.size(), 0);
  side.elements = 1;
  Piece piece{0, 0, INT64_MAX, {}};
  for (size_t i = 0; i < shape.size(); ++i) {
    piece.digits.push_back({{static_cast<int>(i)}, shape[i], 1});
    side.elements *= shape[i];
  }
  side.pieces.push_back(piece);
  return side;
}

// b_fs_yx_fsv<block> of a shape b, f, y, x.
Side feature_blocks(const std::vector<int64_t>& shape, int64_t block) {
  Side side = row_major(shape);
  const int64_t slices = (shape[1] + block - 1) / block;
  side.pieces[0].digits = {
      {{0}, shape[0], 1}, {{1}, slices, block}, {{2}, shape[2], 1}, {{3}, shape[3], 1}, {{1}, block, 1}};
  side.elements = shape[0] * slices * block * shape[2] * shape[3];
  return side;
}

void test_identity() {
  const std::vector<int64_t> shape = {2, 32, 3, 5};
  const Side row = row_major(shape);
  const ReorderPlan same({32, shape, row, row});
  CHECK(same.nest_class() == NestClass::kIdentity);
  CHECK(std::string(same.kernel().name) == "copy_reference");
  // Blocks without holes are equal to themselves too; with holes, zeros have to be written.
  const Side blocked = feature_blocks(shape, 16);
  CHECK(ReorderPlan({8, shape, blocked, blocked}).nest_class() == NestClass::kIdentity);
  const Side holed = feature_blocks(shape, 24);
  CHECK(ReorderPlan({8, shape, holed, holed}).nest_class() == NestClass::kLoopNest);
  CHECK(ReorderPlan({8, shape, row, blocked}).nest_class() == NestClass::kLoopNest);
  // One pixel: blocked and plain order are the same bytes.
  const std::vector<int64_t> pixel = {3, 32, 1, 1};
  CHECK(ReorderPlan({8, pixel, row_major(pixel), feature_blocks(pixel, 16)}).nest_class() ==
        NestClass::kIdentity);
}

void test_merging() {
  const std::vector<int64_t> shape = {2, 32, 30, 50};
  const ReorderPlan plan({32, shape, row_major(shape), feature_blocks(shape, 16)});
  // b and f/16 step alike, y and x do: three loops are left of six digits.
  CHECK(plan.nests().size() == 1);
  CHECK(plan.nests()[0].nodes.size() == 3);
  CHECK(plan.nests()[0].lookups.empty());
}

// Threads take ranges of one destination; neighbours share no element.
void test_threads() {
  const std::vector<int64_t> shape = {3, 19, 65, 33};
  for (int bits : {4, 8, 32}) {
    const ReorderPlan plan({bits, shape, row_major(shape), feature_blocks(shape, 16)});
    Storage source(plan.source_bytes());
    for (int64_t i = 0; i < source.size; ++i) source.data[i] = static_cast<uint8_t>(i * 7 + i / 251);
    Storage whole(plan.destination_bytes());
    plan.run(source.data.get(), whole.data.get(), 0, whole.size);
    Storage split(plan.destination_bytes());
    constexpr int64_t kTile = 4096;
    std::atomic<int64_t> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int64_t begin = next.fetch_add(kTile); begin < split.size; begin = next.fetch_add(kTile)) {
          const int64_t end = std::min(begin + kTile, split.size);
          plan.run(source.data.get(), split.data.get() + begin, begin, end);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(std::memcmp(whole.data.get(), split.data.get(), static_cast<size_t>(whole.size)) == 0);
  }
}

// A period beyond the largest table takes the arithmetic way.
void test_large_periods(std::mt19937_64& random) {
  const std::vector<int64_t> shape = {3, 101, 97};
  Side fused = row_major(shape);
  fused.pieces[0].digits = {{{0}, 3, 1}, {{1, 2}, 4899, 2}, {{1, 2}, 2, 1}};
  fused.elements = 3 * 4899 * 2;
  Side padded = row_major(shape);
  padded.lower = {0, 1, 2};
  padded.upper = {0, 0, 1};
  padded.pieces[0].digits = {{{2}, 100, 1}, {{0}, 3, 1}, {{1}, 102, 1}};
  padded.elements = 100 * 3 * 102;
  check_reorder({8, shape, padded, fused}, random);
  check_reorder({8, shape, fused, padded}, random);
  check_reorder({4, shape, fused, padded}, random);
}

void test_ranges_are_checked() {
  const std::vector<int64_t> shape = {4, 4};
  const ReorderPlan plan({32, shape, row_major(shape), row_major(shape)});
  CHECK(code_of([&] { plan.check_range(0, 64); }).empty());
  CHECK(code_of([&] { plan.check_range(2, 64); }) == "ERR_ARGUMENT");
  CHECK(code_of([&] { plan.check_range(0, 68); }) == "ERR_ARGUMENT");
  CHECK(code_of([&] { plan.check_range(-4, 8); }) == "ERR_ARGUMENT");
  CHECK(code_of([&] { plan.check_range(8, 4); }) == "ERR_ARGUMENT");
}

void test_kernel_table() {
  CHECK(!reorder_kernels().empty());
  for (const ReorderKernel& kernel : reorder_kernels()) CHECK(kernel.name[0] != 0 && kernel.reason[0] != 0);
}

}  // namespace
}  // namespace tilework::test

// An argument is the number of random rounds.
int main(int count, char** arguments) {
  using namespace tilework::test;
  std::mt19937_64 random(7);
  test_random_layouts(count > 1 ? std::atoi(arguments[1]) : 20000);
  test_large_periods(random);
  test_identity();
  test_merging();
  test_threads();
  test_ranges_are_checked();
  test_kernel_table();
  return result();
}
