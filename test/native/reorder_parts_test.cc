// A reorder that is split into parts writes the same bytes as a single run, for every kind of split and every
// order of the parts. The parts run on a thread pool, so that the thread sanitizer checks them.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "parallel/thread_pool.h"
#include "reorder/run/parts.h"
#include "reorder_case.h"

namespace tilework::test {
namespace {

// So low that small cases have many parts.
constexpr PartLimits kTinyLimits{256, 64, 4096, 1};
// Few parts for each thread where they are equal.
constexpr PartLimits kEqualLimits{256, 64, 4096, 1024};

ReorderPlan pixels_to_planes(int bits, const std::vector<int64_t>& shape) {
  Side pixels = row_major(shape);
  pixels.pieces[0].digits = {{{0}, shape[0], 1}, {{2}, shape[2], 1}, {{3}, shape[3], 1}, {{1}, shape[1], 1}};
  return ReorderPlan({bits, shape, pixels, row_major(shape)});
}

bool is_equal(const Storage& a, const uint8_t* b) {
  return std::memcmp(a.data.get(), b, static_cast<size_t>(a.size)) == 0;
}

void check_parts(const std::shared_ptr<const ReorderPlan>& plan, const std::string& name, PartLimits limits,
                 std::mt19937_64& random) {
  Storage source(plan->source_bytes());
  for (int64_t i = 0; i < source.size; ++i) source.data[i] = static_cast<uint8_t>(random());
  const Storage whole(plan->destination_bytes());
  plan->run(source.data.get(), whole.data.get(), 0, whole.size);
  for (size_t threads : {1, 2, 3, 8}) {
    static ThreadPool pool(1);
    pool.set_threads(threads);
    const Storage result(plan->destination_bytes());
    std::memset(result.data.get(), 0xA5, static_cast<size_t>(result.size));
    const ReorderParts parts(plan, threads, limits);
    pool.run(parts.count(), [&](int64_t part) { parts.run(part, source.data.get(), result.data.get()); });
    CHECK_IN(name + " threads " + std::to_string(threads), is_equal(result, whole.data.get()));
    const int64_t unit = std::max(plan->element_bits() / 8, 1);
    const int64_t begin = plan->destination_bytes() / unit / 3 * unit;
    const Storage range(plan->destination_bytes() - begin);
    std::memset(range.data.get(), 0xA5, static_cast<size_t>(range.size));
    const ReorderParts ranges(plan, begin, plan->destination_bytes(), threads, limits);
    for (int64_t part = ranges.count(); part-- > 0;) {
      ranges.run(part, source.data.get(), range.data.get());
    }
    CHECK_IN(name + " range, threads " + std::to_string(threads), is_equal(range, whole.data.get() + begin));
  }
}

void test_random_cases(int rounds) {
  std::mt19937_64 random(20250301);
  RandomLayout layouts(random);
  for (int i = 0; i < rounds && failures < 10; ++i) {
    const ReorderDescription description = random_description(layouts, i);
    if (!is_small(description)) continue;
    const auto plan = std::make_shared<const ReorderPlan>(description);
    for (const PartLimits& limits : {kTinyLimits, kEqualLimits})
      check_parts(plan, describe(description), limits, random);
  }
}

// Tiles of few columns, with tails and padding, in every element width.
void test_planes() {
  std::mt19937_64 random(20250302);
  for (int bits : {8, 16, 32, 64, 128}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{1, 3, 37, 41}, {2, 4, 33, 64}, {1, 17, 25, 31}, {3, 2, 1, 500}}) {
      const auto plan = std::make_shared<const ReorderPlan>(pixels_to_planes(bits, shape));
      const std::string name = std::to_string(bits) + " bits, " + std::to_string(shape[1]) + " planes";
      check_parts(plan, name, kTinyLimits, random);
      const ReorderDescription blocked{bits, shape, feature_blocks(shape, 16), row_major(shape)};
      check_parts(std::make_shared<const ReorderPlan>(blocked), name + " of blocks", kTinyLimits, random);
    }
  }
}

void test_cuts() {
  const auto parts_of = [](const std::vector<int64_t>& shape, size_t threads) {
    return ReorderParts(std::make_shared<const ReorderPlan>(pixels_to_planes(32, shape)), threads);
  };
  using Cut = ReorderParts::Cut;
  // Less than 256 KiB of source and destination: one part.
  CHECK(parts_of({1, 3, 100, 100}, 8).cut() == Cut::kWhole);
  // Three planes are one tile; each thread moves half of its pixels.
  const ReorderParts image = parts_of({1, 3, 224, 224}, 2);
  CHECK(image.cut() == Cut::kLoop && image.count() == 2);
  // Three images cannot be halved: each is cut into four.
  const ReorderParts three = parts_of({3, 3, 124, 124}, 2);
  CHECK(three.cut() == Cut::kLoop && three.count() == 12);
  // Of half of the images one thread would have all.
  const auto two = std::make_shared<const ReorderPlan>(pixels_to_planes(32, {2, 3, 224, 224}));
  CHECK(ReorderParts(two, 2).count() == 2);
  const int64_t bytes = two->destination_bytes();
  CHECK(ReorderParts(two, bytes / 2, bytes, 2).count() >= 8);
  // Of many images each part has some.
  const ReorderParts images = parts_of({64, 3, 224, 224}, 2);
  CHECK(images.cut() == Cut::kLoop && images.count() >= 8);
  // One thread runs one part, unless it is so large that it could not be stopped soon.
  CHECK(parts_of({1, 3, 224, 224}, 1).cut() == Cut::kWhole && parts_of({64, 3, 224, 224}, 1).count() > 1);
  // A small part of the destination is cut into ranges.
  const auto plan = std::make_shared<const ReorderPlan>(pixels_to_planes(32, {64, 3, 224, 224}));
  CHECK(ReorderParts(plan, 0, plan->destination_bytes() / 4, 2).cut() == Cut::kRanges);
  CHECK(parts_of({0, 3, 224, 224}, 2).count() == 1);
}

// Blocks whose runs are written to offsets farther apart than the size of a part.
void test_far_columns() {
  std::mt19937_64 random(20250303);
  constexpr PartLimits kSmallLimits{0, 64, 4096, 1};
  for (int bits : {8, 16, 32}) {
    for (int64_t features : {32, 37}) {
      const std::vector<int64_t> shape = {2, features, 33, 35};
      const auto plan = std::make_shared<const ReorderPlan>(
          ReorderDescription{bits, shape, feature_blocks(shape, 32), feature_blocks(shape, 16)});
      check_parts(plan, std::to_string(bits) + " bits, " + std::to_string(features) + " features",
                  kSmallLimits, random);
    }
  }
}

// Tiles that read a long stretch of each source row and write to offsets farther apart than the largest part.
void test_far_tiles() {
  std::mt19937_64 random(20250305);
  constexpr PartLimits kSmallLimits{0, 64, 4096, 1};
  for (int64_t images : {16, 32}) {
    const std::vector<int64_t> shape = {images, 16, 18, 21};
    Side blocks = row_major(shape);
    blocks.pieces[0].digits = {
        {{0}, images / 16, 16}, {{2}, shape[2], 1}, {{3}, shape[3], 1}, {{0}, 16, 1}, {{1}, 16, 1}};
    const auto plan =
        std::make_shared<const ReorderPlan>(ReorderDescription{8, shape, blocks, feature_blocks(shape, 16)});
    // Each part has some pixels of all 16 images of a block.
    CHECK(ReorderParts(plan, 2, kSmallLimits).cut() == ReorderParts::Cut::kLoop);
    check_parts(plan, std::to_string(images) + " images of lanes", kSmallLimits, random);
  }
}

// Blocks merged into larger blocks: a range of the destination has the runs of many pixels, which are
// adjacent in the source.
void test_near_columns() {
  std::mt19937_64 random(20250306);
  for (int bits : {16, 32}) {
    const std::vector<int64_t> shape = {1, 64, 64, 64};
    const auto plan = std::make_shared<const ReorderPlan>(
        ReorderDescription{bits, shape, feature_blocks(shape, 16), feature_blocks(shape, 32)});
    check_parts(plan, std::to_string(bits) + " bits", kPartLimits, random);
  }
}

// Reversed axes, where an extent is one more than a multiple of a cache line: the last part of a loop has one
// iteration, so that no loop of its nest is contiguous in the destination.
void test_last_iterations() {
  std::mt19937_64 random(20261122);
  for (int bits : {4, 8, 16, 32, 64, 128}) {
    const int64_t line = 64 * 8 / bits;
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{line + 1, 75, 39}, {2 * line + 1, 1, 56, 9}, {17, 64, line + 1}}) {
      Side reversed = row_major(shape);
      std::reverse(reversed.pieces[0].digits.begin(), reversed.pieces[0].digits.end());
      const auto plan =
          std::make_shared<const ReorderPlan>(ReorderDescription{bits, shape, row_major(shape), reversed});
      for (size_t threads : {1, 2, 3, 8}) CHECK(ReorderParts(plan, threads).count() >= 1);
      check_parts(plan, std::to_string(bits) + " bits, reversed", kPartLimits, random);
      check_parts(plan, std::to_string(bits) + " bits, reversed, small", kTinyLimits, random);
    }
  }
}

// Runs of blocks, of many images and of few.
void test_whole_columns() {
  const std::vector<int64_t> shape = {16, 32, 32, 40};
  Side pixels = row_major(shape);
  pixels.pieces[0].digits = {{{0}, shape[0], 1}, {{2}, shape[2], 1}, {{3}, shape[3], 1}, {{1}, shape[1], 1}};
  const auto blocks_of = [&](int64_t images) {
    std::vector<int64_t> some = shape;
    some[0] = images;
    Side from = pixels;
    from.pieces[0].digits[0].radix = images;
    from.elements = images * 32 * 32 * 40;
    return std::make_shared<const ReorderPlan>(ReorderDescription{16, some, from, feature_blocks(some, 16)});
  };
  CHECK(ReorderParts(blocks_of(16), 2).cut() == ReorderParts::Cut::kLoop);
  CHECK(ReorderParts(blocks_of(3), 2).cut() == ReorderParts::Cut::kLoop);
  std::mt19937_64 random(20250304);
  for (int64_t images : {1, 3, 16}) {
    check_parts(blocks_of(images), std::to_string(images) + " images", kPartLimits, random);
  }
}

}  // namespace
}  // namespace tilework::test

int main(int count, char** arguments) {
  using namespace tilework::test;
  test_random_cases(count > 1 ? std::atoi(arguments[1]) : 400);
  test_planes();
  test_cuts();
  test_far_columns();
  test_near_columns();
  test_last_iterations();
  test_far_tiles();
  test_whole_columns();
  return result();
}
