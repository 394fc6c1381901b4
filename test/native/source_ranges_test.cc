// The source ranges of a part of the destination, against the elements that it depends on.
#include "reorder/run/source_ranges.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "check.h"
#include "reorder_case.h"

namespace tilework::test {
namespace {

// Source bytes of destination bytes [begin, end), as ranges; gaps of up to `gap` bytes are merged.
std::vector<ByteRange> expected_ranges(const ReorderDescription& description, const ReorderPlan& plan,
                                       const std::vector<int64_t>& sources, int64_t begin, int64_t end,
                                       int64_t gap) {
  const int bits = description.element_bits;
  std::vector<bool> read(static_cast<size_t>(plan.source_bytes()), false);
  const int64_t last = std::min(end * 8 / bits, plan.destination_elements());
  for (int64_t slot = begin * 8 / bits; slot < last; ++slot) {
    const int64_t source = sources[static_cast<size_t>(slot)];
    for (int64_t byte = source * bits / 8; source >= 0 && byte * 8 < (source + 1) * bits; ++byte) {
      read[static_cast<size_t>(byte)] = true;
    }
  }
  std::vector<ByteRange> ranges;
  for (int64_t byte = 0; byte < plan.source_bytes(); ++byte) {
    if (!read[static_cast<size_t>(byte)]) continue;
    if (!ranges.empty() && byte - ranges.back().end <= gap) {
      ranges.back().end = byte + 1;
    } else {
      ranges.push_back({byte, byte + 1});
    }
  }
  return ranges;
}

std::string text_of(const std::vector<ByteRange>& ranges) {
  std::string text;
  for (const ByteRange& range : ranges) {
    text += " " + std::to_string(range.begin) + ".." + std::to_string(range.end);
  }
  return text;
}

void check_ranges(const ReorderDescription& description, RandomLayout& layouts) {
  const ReorderPlan plan(description);
  const std::vector<int64_t> sources = sources_of(description);
  const int64_t unit = std::max(description.element_bits / 8, 1);
  for (int i = 0; i < 8; ++i) {
    const int64_t units = plan.destination_bytes() / unit;
    const int64_t begin = i == 0 ? 0 : unit * layouts.below(units + 1);
    const int64_t end =
        i == 0 ? plan.destination_bytes() : begin + unit * layouts.below(units - begin / unit + 1);
    // There are no gaps smaller than an element.
    const int64_t gap = unit * (layouts.below(2) == 0 ? 0 : layouts.below(40));
    const auto expected = expected_ranges(description, plan, sources, begin, end, gap);
    const auto found = source_ranges(plan, begin, end, gap);
    CHECK_IN(describe(description) + " range " + std::to_string(begin) + ".." + std::to_string(end) +
                 " gap " + std::to_string(gap) + " expected" + text_of(expected) + " found" + text_of(found),
             found == expected);
  }
}

void test_random_layouts(int rounds) {
  std::mt19937_64 random(31337);
  RandomLayout layouts(random);
  for (int i = 0; i < rounds && failures < 10; ++i) {
    const ReorderDescription description = random_description(layouts, i);
    if (is_small(description)) check_ranges(description, layouts);
  }
}

void test_plain_cases() {
  // The 16 features of a tile are in 16 planes.
  const std::vector<int64_t> shape = {2, 64, 256, 256};
  const int64_t plane = int64_t{256} * 256 * 4;
  const ReorderPlan to_blocks({32, shape, row_major(shape), feature_blocks(shape, 16)});
  const int64_t tile = int64_t{1} << 20;
  const std::vector<ByteRange> planes = source_ranges(to_blocks, 3 * tile, 4 * tile);
  CHECK(planes.size() == 16);
  for (size_t i = 0; i < planes.size(); ++i) {
    CHECK(planes[i].begin == static_cast<int64_t>(i) * plane + 3 * tile / 16);
    CHECK(planes[i].size() == tile / 16);
  }
  // In the other direction a plane is every 16th element of one range.
  const ReorderPlan from_blocks({32, shape, feature_blocks(shape, 16), row_major(shape)});
  const std::vector<ByteRange> blocks = source_ranges(from_blocks, 5 * plane, 6 * plane);
  CHECK(blocks.size() == 1 && blocks[0].begin == 5 * 4 && blocks[0].end == 16 * plane - 10 * 4);
  CHECK(source_ranges(from_blocks, 0, 0).empty());
  // A range of whole rows; every second row.
  const Slice rows{shape, {1, 5, 0, 0}, {1, 1, 1, 1}};
  const ReorderPlan taken({32, {1, 3, 256, 256}, row_major(shape), row_major({1, 3, 256, 256}), rows});
  CHECK(source_ranges(taken, 0, 3 * plane) == (std::vector<ByteRange>{{69 * plane, 72 * plane}}));
  const Slice others{{64, 4096}, {0, 0}, {2, 1}};
  const ReorderPlan skipping({32, {32, 4096}, row_major({64, 4096}), row_major({32, 4096}), others});
  CHECK(source_ranges(skipping, 0, skipping.destination_bytes()).size() == 32);
}

// The number of ranges is bounded, and they still cover everything.
void test_number_is_bounded() {
  const int64_t rows = 20000;
  const int64_t row = 8192;
  const ReorderPlan transposed(
      {8, {row, rows}, row_major({row, rows}), row_major({row, rows}), Slice{{row, rows}, {0, 0}, {1, 1}}});
  CHECK(source_ranges(transposed, 0, transposed.destination_bytes()).size() == 1);
  Side columns = row_major({rows, row});
  columns.pieces[0].digits = {{{1}, row, 1}, {{0}, rows, 1}};
  const ReorderPlan plan({8, {rows, row}, row_major({rows, row}), columns});
  const std::vector<ByteRange> ranges = source_ranges(plan, 0, rows);
  CHECK(!ranges.empty() && ranges.size() <= kMaxSourceRanges);
  CHECK(ranges.front().begin == 0 && ranges.back().end == (rows - 1) * row + 1);
  CHECK(source_ranges(plan, 0, 1000).size() == 1000);
}

}  // namespace
}  // namespace tilework::test

// The argument is the number of random rounds.
int main(int count, char** arguments) {
  using namespace tilework::test;
  test_random_layouts(count > 1 ? std::atoi(arguments[1]) : 4000);
  test_plain_cases();
  test_number_is_bounded();
  return result();
}
