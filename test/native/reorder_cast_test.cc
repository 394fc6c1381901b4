// Plans with casts and scalings, against the oracles and the reference casts: random layouts, types and
// parameter blocks; in memory as a whole and by ranges, and between files by tiles.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "changed_elements.h"
#include "check.h"
#include "cpu/isa.h"
#include "guarded_memory.h"
#include "reorder/leaf/nibbles.h"
#include "reorder/run/parts.h"
#include "reorder/run/reorder_file.h"
#include "reorder/run/source_ranges.h"
#include "reorder_case.h"
#include "temporary_folder.h"

namespace tilework::test {
namespace {

constexpr int64_t kOffset = 100;
constexpr TileLimits kSmallTiles{128, 192};

// Row-major source index for each destination slot.
std::vector<int64_t> indices_of(ReorderDescription description) {
  description.from = row_major(source_shape(description));
  return sources_of(description);
}

std::vector<uint8_t> expected_casts(const ReorderDescription& description, const ReorderPlan& plan,
                                    const uint8_t* source) {
  const int bits = info_of(to_of(description.casts.back())).bits;
  std::vector<uint8_t> expected(static_cast<size_t>(plan.destination_bytes()), 0);
  const std::vector<int64_t> sources = sources_of(description);
  const std::vector<int64_t> indices = indices_of(description);
  for (size_t slot = 0; slot < sources.size(); ++slot) {
    if (sources[slot] < 0) continue;
    const ElementBytes changed = change_element(description, source, {sources[slot], indices[slot]});
    if (bits >= 8) {
      std::memcpy(expected.data() + slot * static_cast<size_t>(bits / 8), changed.data(),
                  static_cast<size_t>(bits / 8));
    } else {
      store_packed_element(expected.data(), bits, static_cast<int64_t>(slot), changed[0]);
    }
  }
  return expected;
}

std::vector<uint8_t> random_bytes(int64_t size, std::mt19937_64& random) {
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

struct Case {
  const ReorderDescription& description;
  std::shared_ptr<const ReorderPlan> plan;
  const std::vector<uint8_t>& source;
  const std::vector<uint8_t>& expected;

  std::string name(const std::string& what) const {
    return text(description.casts) + " " + what + ": " + describe(description);
  }
};

int64_t random_end(const ReorderPlan& plan, int64_t begin, RandomLayout& layouts) {
  return std::min(begin + plan.range_quantum() * (1 + layouts.below(300)), plan.destination_bytes());
}

void check_memory(const Case& test, RandomLayout& layouts) {
  const ReorderPlan& plan = *test.plan;
  CHECK_IN(test.name("unit"), plan.range_unit(1 << 20) % plan.range_quantum() == 0);
  for (int64_t begin = 0; begin < plan.destination_bytes();) {
    const int64_t end = begin == 0 ? plan.destination_bytes() : random_end(plan, begin, layouts);
    const Storage part(end - begin);
    std::memset(part.data.get(), 0xA5, static_cast<size_t>(part.size));
    const Stores stores = layouts.below(2) == 0 ? Stores::kStreaming : Stores::kCached;
    plan.run(test.source.data(), part.data.get(), begin, end, stores);
    CHECK_IN(test.name("range " + std::to_string(begin) + ".." + std::to_string(end)),
             std::equal(test.expected.begin() + begin, test.expected.begin() + end, part.data.get()));
    // First the whole destination, then again in ranges.
    begin = begin == 0 ? plan.range_quantum() : end;
  }
}

void check_file(const Case& test, const TemporaryFolder& folder, RandomLayout& layouts) {
  const ReorderPlan& plan = *test.plan;
  const std::string path =
      folder.write("source", std::string(kOffset, '?') + std::string(test.source.begin(), test.source.end()));
  const auto file = InputFile::open(path, {.mapped = false}, nullptr);
  FileScratch scratch;
  for (int64_t begin = 0; begin < plan.destination_bytes();) {
    const int64_t end = begin == 0 ? plan.destination_bytes() : random_end(plan, begin, layouts);
    const FileReorder reorder(test.plan, begin, end, layouts.below(4) == 0 ? kFileTileLimits : kSmallTiles);
    std::vector<uint8_t> part(static_cast<size_t>(end - begin), 0xA5);
    for (int64_t tile = 0; tile < reorder.tiles(); ++tile) {
      reorder.run_tile(tile, {*file, kOffset}, part.data(), scratch);
    }
    CHECK_IN(test.name("file " + std::to_string(begin) + ".." + std::to_string(end)),
             std::equal(part.begin(), part.end(), test.expected.begin() + begin));
    begin = begin == 0 ? plan.range_quantum() : end;
  }
}

// Poisons everything outside the source ranges of a destination range; the result must not change.
void check_source_ranges(const Case& test, RandomLayout& layouts) {
  const ReorderPlan& plan = *test.plan;
  const int64_t begin =
      layouts.below(plan.destination_bytes() / plan.range_quantum() + 1) * plan.range_quantum();
  if (begin >= plan.destination_bytes()) return;
  const int64_t end = random_end(plan, begin, layouts);
  std::vector<uint8_t> spoiled(test.source.size(), 0x5A);
  for (const ByteRange& range : source_ranges(plan, begin, end, 0)) {
    std::copy(test.source.begin() + range.begin, test.source.begin() + range.end,
              spoiled.begin() + range.begin);
  }
  std::vector<uint8_t> part(static_cast<size_t>(end - begin), 0xA5);
  plan.run(spoiled.data(), part.data(), begin, end);
  CHECK_IN(test.name("source ranges"), std::equal(part.begin(), part.end(), test.expected.begin() + begin));
}

void test_random_layouts(int rounds) {
  std::mt19937_64 random(1955);
  RandomLayout layouts(random);
  const TemporaryFolder folder;
  for (int i = 0; i < rounds && failures < 10; ++i) {
    ReorderDescription description = random_description(layouts, i);
    if (!is_small(description)) continue;
    description.casts = random_changes(description, layouts);
    const auto plan = std::make_shared<const ReorderPlan>(description);
    const std::vector<uint8_t> source = random_bytes(plan->source_bytes(), random);
    const std::vector<uint8_t> expected = expected_casts(description, *plan, source.data());
    const Case test{description, plan, source, expected};
    check_memory(test, layouts);
    check_file(test, folder, layouts);
    check_source_ranges(test, layouts);
  }
}

ReorderDescription plain(Dtype from, Dtype to, std::vector<int64_t> shape, const CastOptions& options = {}) {
  ReorderDescription description;
  description.element_bits = info_of(from).bits;
  description.shape = std::move(shape);
  description.from = row_major(description.shape);
  description.to = row_major(description.shape);
  description.casts = {Cast(from, to, options)};
  return description;
}

// Larger than the buffer between moves and casts, with a transpose, for types of all widths.
void test_large() {
  std::mt19937_64 random(77);
  for (const Dtype from : {Dtype::kInt4, Dtype::kUint8, Dtype::kFloat16, Dtype::kFloat32, Dtype::kInt64}) {
    for (const Dtype to : {Dtype::kFloat32, Dtype::kInt8, Dtype::kUint4, Dtype::kComplex128}) {
      ReorderDescription description = plain(from, to, {300, 702});
      std::swap(description.to.pieces[0].digits[0], description.to.pieces[0].digits[1]);
      const ReorderPlan plan(description);
      const std::vector<uint8_t> source = random_bytes(plan.source_bytes(), random);
      const std::vector<uint8_t> expected = expected_casts(description, plan, source.data());
      for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
        std::vector<uint8_t> found(expected.size(), 0xA5);
        plan.run(source.data(), found.data(), 0, plan.destination_bytes(), stores);
        CHECK_IN(text(description.casts), found == expected);
      }
    }
  }
}

// Narrowing casts of images, whole and in ranges.
void test_images() {
  const std::vector<int64_t> shape = {3, 40, 64, 80};
  const Side planes = row_major(shape);
  Side pixels = planes;
  std::rotate(pixels.pieces[0].digits.begin() + 1, pixels.pieces[0].digits.begin() + 2,
              pixels.pieces[0].digits.end());
  std::mt19937_64 random(78);
  for (const Dtype to : {Dtype::kFloat16, Dtype::kInt8, Dtype::kFloat8E8m0fnu}) {
    for (const auto& [before, after] : {std::pair{planes, pixels}, std::pair{pixels, planes},
                                        std::pair{planes, feature_blocks(shape, 16)}}) {
      ReorderDescription description = plain(Dtype::kFloat32, to, shape);
      description.from = before;
      description.to = after;
      const ReorderPlan plan(description);
      CHECK_IN(text(description.casts), plan.cast()->programs().size() == 1);
      const std::vector<uint8_t> source = random_bytes(plan.source_bytes(), random);
      const std::vector<uint8_t> expected = expected_casts(description, plan, source.data());
      for (const int64_t parts : {1, 7}) {
        std::vector<uint8_t> found(expected.size(), 0xA5);
        const int64_t unit = plan.range_quantum();
        for (int64_t part = 0; part < parts; ++part) {
          const int64_t all = plan.destination_bytes();
          const int64_t begin = all * part / parts / unit * unit;
          const int64_t end = all * (part + 1) / parts / unit * unit;
          plan.run(source.data(), found.data() + begin, begin, end, Stores::kStreaming);
        }
        CHECK_IN(text(description.casts) + " in parts " + std::to_string(parts), found == expected);
      }
    }
  }
}

// Numbers of common size, without NaN and infinities: half of them between two neighbours of a 16-bit type,
// or from 32 to 128 for a byte.
void make_common(std::vector<uint8_t>& floats, Dtype to) {
  const bool is_byte = to == Dtype::kInt8 || to == Dtype::kUint8;
  for (size_t at = 0; at + 4 <= floats.size(); at += 4) {
    uint32_t bits = 0;
    std::memcpy(&bits, &floats[at], sizeof(bits));
    bits = (bits & 0x80ffffff) | (is_byte ? 0x42000000 : 0x3f000000);
    if (at % 8 == 0) bits = (bits & 0xffff0000) | 0x8000;
    std::memcpy(&floats[at], &bits, sizeof(bits));
  }
}

// Whether this processor has blocks that cast.
bool has_cast_blocks() {
#if defined(__x86_64__)
  return can_run(Isa::kAvx2);
#else
  return false;
#endif
}

// Types that are cast in registers: tiles of more and of less than a block, with tails, holes, rows that
// share sets of the cache, and streamed; with special values and without them, which rounds in another way.
void test_registers() {
  constexpr std::array kNarrow = {Dtype::kFloat16, Dtype::kBfloat16, Dtype::kInt8, Dtype::kUint8};
  std::mt19937_64 random(80);
  for (const Dtype narrow : kNarrow) {
    for (const auto& [from, to] : {std::pair{Dtype::kFloat32, narrow}, std::pair{narrow, Dtype::kFloat32}}) {
      for (const auto& [channels, pixels] : {std::pair{3, 70}, std::pair{8, 64}, std::pair{17, 61},
                                             std::pair{33, 33}, std::pair{40, 1024}, std::pair{128, 97}}) {
        const std::vector<int64_t> shape = {2, channels, 1, pixels};
        const Side planes = row_major(shape);
        const Side last = plain_order(shape, {0, 2, 3, 1});
        const Side blocks = feature_blocks(shape, 16);
        for (const auto& [before, after] : {std::pair{planes, last}, std::pair{last, planes},
                                            std::pair{planes, blocks}, std::pair{blocks, planes}}) {
          ReorderDescription description = plain(from, to, shape);
          description.from = before;
          description.to = after;
          const ReorderPlan plan(description);
          const bool is_in_registers = plan.reason().find("in registers where") != std::string::npos;
          CHECK_IN(text(description.casts), is_in_registers == has_cast_blocks());
          for (const bool is_common : {false, true}) {
            std::vector<uint8_t> source = random_bytes(plan.source_bytes(), random);
            if (is_common && from == Dtype::kFloat32) make_common(source, to);
            const std::vector<uint8_t> expected = expected_casts(description, plan, source.data());
            for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
              std::vector<uint8_t> found(expected.size(), 0xA5);
              plan.run(source.data(), found.data(), 0, plan.destination_bytes(), stores);
              CHECK_IN(text(description.casts) + " " + std::to_string(channels) + " channels of " +
                           std::to_string(pixels) + " to " + std::to_string(after.pieces[0].digits.size()),
                       found == expected);
            }
          }
        }
      }
    }
  }
}

// Units of every size that passes through the buffer, with several of them in rows and columns.
void test_unit_sizes() {
  std::mt19937_64 random(79);
  for (const auto& [from, to] :
       {std::pair{Dtype::kFloat64, Dtype::kFloat32}, std::pair{Dtype::kFloat32, Dtype::kFloat64},
        std::pair{Dtype::kInt4, Dtype::kFloat32}}) {
    for (int64_t unit : {1, 3, 33, 40, 75, 127}) {
      const std::vector<int64_t> shape = {60, 58, unit};
      ReorderDescription description = plain(from, to, shape);
      description.to = plain_order(shape, {1, 0, 2});
      const ReorderPlan plan(description);
      const std::vector<uint8_t> source = random_bytes(plan.source_bytes(), random);
      const std::vector<uint8_t> expected = expected_casts(description, plan, source.data());
      std::vector<uint8_t> found(expected.size(), 0xA5);
      plan.run(source.data(), found.data(), 0, plan.destination_bytes(), Stores::kCached);
      CHECK_IN(text(description.casts) + " unit " + std::to_string(unit), found == expected);
    }
  }
}

// Holes stay zero even if the cast maps zero to another value.
void test_holes() {
  for (const auto& [from, to] : {std::pair{Dtype::kFloat8E8m0fnu, Dtype::kFloat32},
                                 std::pair{Dtype::kFloat32, Dtype::kFloat8E8m0fnu}}) {
    CastOptions options;
    options.saturate = false;
    ReorderDescription description = plain(from, to, {3, 5}, options);
    description.to.lower = {1, 2};
    description.to.upper = {2, 1};
    description.to.pieces[0].digits[0].radix = 6;
    description.to.pieces[0].digits[1].radix = 8;
    description.to.elements = 48;
    const ReorderPlan plan(description);
    CHECK(plan.cast()->must_find_holes());
    const std::vector<uint8_t> source(static_cast<size_t>(plan.source_bytes()), 0);
    const std::vector<uint8_t> expected = expected_casts(description, plan, source.data());
    std::vector<uint8_t> found(expected.size(), 0xA5);
    plan.run(source.data(), found.data(), 0, plan.destination_bytes());
    CHECK_IN(text(description.casts), found == expected);
    CHECK(std::count(found.begin(), found.end(), 0) < static_cast<int64_t>(found.size()));
  }
}

void test_two_bits() {
  const ReorderPlan plan(plain(Dtype::kInt2, Dtype::kInt8, {7}));
  const uint8_t source[] = {0b11100100, 0b11100100};
  uint8_t found[7] = {};
  plan.run(source, found, 0, plan.destination_bytes());
  const uint8_t expected[] = {0, 1, 0xfe, 0xff, 0, 1, 0xfe};
  CHECK(std::equal(std::begin(expected), std::end(expected), found));
  ReorderDescription moved = plain(Dtype::kInt2, Dtype::kInt8, {4, 3});
  std::swap(moved.to.pieces[0].digits[0], moved.to.pieces[0].digits[1]);
  CHECK(code_of([&] { ReorderPlan{moved}; }) == "ERR_UNSUPPORTED");
}

// Odd counts to elements below a byte, as a whole and cut for threads: the unused bits of the last byte are
// zero, also where a thread starts in the middle.
void test_unused_bits() {
  constexpr PartLimits kManyParts{0, 64, 256, 1};
  std::mt19937_64 random(79);
  for (const DtypeInfo& from : dtypes()) {
    for (const DtypeInfo& to : dtypes()) {
      if (to.bits >= 8 || is_complex(from.dtype) || from.dtype == to.dtype) continue;
      for (const int64_t count : {1, 3, 7, 63, 65, 1023, 1025, 4099, 4101}) {
        const Cast cast(from.dtype, to.dtype, CastOptions{});
        const auto plan = std::make_shared<const ReorderPlan>(plain(from.dtype, to.dtype, {count}));
        const std::vector<uint8_t> source = random_bytes(plan->source_bytes(), random);
        std::vector<uint8_t> expected(static_cast<size_t>(packed_bytes(to.dtype, count)));
        cast_reference({source.data(), expected.data(), count, from.dtype, to.dtype, cast.options()});
        for (const size_t threads : {size_t{1}, size_t{3}}) {
          const ReorderParts parts(plan, threads, kManyParts);
          std::vector<uint8_t> found(expected.size(), 0xA5);
          for (int64_t part = 0; part < parts.count(); ++part) parts.run(part, source.data(), found.data());
          CHECK_IN(cast.kernels() + " of " + std::to_string(count) + ", threads " + std::to_string(threads),
                   found == expected);
        }
      }
    }
  }
}

// Rows of 4-bit elements that start inside a byte are shifted a piece at a time, and each element has a scale
// of its own: a piece must count from where it is.
void test_long_rows_from_half_bytes() {
  const int64_t row = 3001;
  ReorderDescription description = plain(Dtype::kInt4, Dtype::kFloat32, {3, row});
  description.slice = Slice{{3, row + 2}, {0, 1}, {1, 1}};
  description.from = row_major(description.slice->shape);
  ScalingDescription scaling;
  scaling.kind = ScalingKind::kDequantize;
  scaling.from = Dtype::kInt4;
  scaling.blocks = {3, 1};
  for (int64_t i = 0; i < row + 2; ++i) {
    scaling.scales.push_back(static_cast<double>(i + 1));
    scaling.offsets.push_back(0);
  }
  description.casts = {scaling};
  std::mt19937_64 random(81);
  const ReorderPlan plan(description);
  const std::vector<uint8_t> source = random_bytes(plan.source_bytes(), random);
  const std::vector<uint8_t> expected = expected_casts(description, plan, source.data());
  std::vector<uint8_t> found(expected.size(), 0xA5);
  plan.run(source.data(), found.data(), 0, plan.destination_bytes());
  CHECK(found == expected);
}

// Pairs of rows of 4-bit elements that end with their memory: nothing behind them is read.
void test_pairs_at_the_end_of_memory() {
  const GuardedMemory memory(200);
  std::mt19937_64 random(82);
  for (const int64_t start : {0, 1}) {
    for (int64_t count = 1; count <= 130; ++count) {
      const int64_t bytes = (start + count + 1) / 2;
      uint8_t* const row = memory.place(bytes, Against::kUpper);
      for (int64_t i = 0; i < bytes; ++i) row[i] = static_cast<uint8_t>(random());
      uint8_t pairs[160];
      pair_nibbles(row, start, kNoNibbles, count, pairs);
      bool is_right = true;
      for (int64_t i = 0; i < count; ++i)
        is_right = is_right && pairs[i] == packed_element(row, 4, start + i);
      CHECK_IN(std::to_string(count) + " elements from " + std::to_string(start), is_right);
    }
  }
}

void test_refusals() {
  ReorderDescription wrong = plain(Dtype::kInt8, Dtype::kFloat32, {4});
  wrong.element_bits = 16;
  CHECK(code_of([&] { ReorderPlan{wrong}; }) == "ERR_ARGUMENT");
  ReorderDescription broken = plain(Dtype::kInt8, Dtype::kFloat32, {4});
  broken.casts.emplace_back(Cast(Dtype::kInt8, Dtype::kFloat32, CastOptions{}));
  CHECK(code_of([&] { ReorderPlan{broken}; }) == "ERR_ARGUMENT");
  const ReorderPlan plan(plain(Dtype::kInt4, Dtype::kFloat32, {8}));
  CHECK(plan.range_quantum() == 8);
  CHECK(code_of([&] { plan.check_range(4, 16); }) == "ERR_ARGUMENT");
}

}  // namespace
}  // namespace tilework::test

int main(int count, char** arguments) {
  using namespace tilework::test;
  test_random_layouts(count > 1 ? std::atoi(arguments[1]) : 2000);
  test_large();
  test_images();
  test_registers();
  test_unit_sizes();
  test_holes();
  test_two_bits();
  test_unused_bits();
  test_long_rows_from_half_bytes();
  test_pairs_at_the_end_of_memory();
  test_refusals();
  return result();
}
