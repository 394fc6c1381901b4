// The tiling of common reorders: which loops make the unit, the rows, the columns and the loops around a
// tile.
#include "reorder/plan/tiling.h"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "reorder/plan/plan.h"
#include "reorder_case.h"

namespace tilework::test {
namespace {

struct Case {
  const char* name;
  ReorderDescription description;
  std::string_view tiling;
};

std::string tiling_text(const ReorderDescription& description) {
  const ReorderPlan plan(description);
  return describe(plan.programs().front()->tiling());
}

std::vector<Case> cases() {
  const std::vector<int64_t> image = {1, 64, 112, 112};
  const std::vector<int64_t> weights = {64, 64, 3, 3};
  const std::vector<int64_t> large = {512, 512, 3, 3};
  const std::vector<int64_t> odd = {64, 3, 7, 7};
  const Slice half{{10, 12}, {0, 0}, {1, 2}};
  return {
      {"planes to blocks of 16 features",
       {32, image, row_major(image), feature_blocks(image, 16)},
       "unit 4\nrows [16 s50176 d4] direct 64\ncolumns [16/12544 s4 d64] direct 64\n"
       "outer [4 s802816 d802816] [784/12544 s64 d1024]\n"},
      {"pixels to planes",
       {8, image, channels_last(image), row_major(image)},
       "unit 1\nrows [64/12544 s64 d1] direct 64\ncolumns [64 s1 d12544] direct 64\n"
       "outer [196/12544 s4096 d64]\n"},
      {"features kept together are a unit",
       {16, image, channels_last(image), feature_blocks(image, 16)},
       "unit 32\nrows [4/12544 s128 d32] direct 128\ncolumns [4 s32 d401408] direct 128\n"
       "outer [3136/12544 s512 d128]\n"},
      {"windows of 9 elements",
       {8, weights, row_major(weights), interleaved_blocks(weights, 1, 8, 8)},
       "unit 1\nrows [8 s9 d1] [8 s576 d8] direct 64\ncolumns [9 s1 d64] direct 9\n"
       "outer [8 s4608 d4608] [8 s72 d576]\n"},
      {"a block of a list ends with a line",
       {32, large, plain_order(large, {2, 3, 1, 0}), row_major(large)},
       "unit 4\nrows [9 s1048576 d4] [16/512 s2048 d36] direct 576\n"
       "columns [16/512 s4 d18432] direct 64\n"
       "outer [32/512 s32768 d576] [32/512 s64 d294912]\n"},
      {"rows that leave registers empty take the next loop",
       {16, odd, interleaved_blocks(odd, 8, 8, 1), row_major(odd)},
       "unit 2\nrows [49 s128 d2] [3 s16 d98] direct 294\ncolumns [8 s2 d294] direct 16\n"
       "outer [8 s6272 d2352]\n"},
      {"every second element",
       {32, {10, 6}, row_major({10, 12}), row_major({10, 6}), half},
       "unit 4\nrows [60 s8 d4] direct 240\ncolumns direct 4\nouter\n"},
  };
}

void test_tilings() {
  for (const Case& each : cases()) {
    const std::string text = tiling_text(each.description);
    CHECK_IN(std::string(each.name) + "\n" + text, text == each.tiling);
  }
}

// No range that begins and ends at multiples of the reach cuts a tile.
void test_reach() {
  const std::vector<int64_t> image = {1, 64, 112, 112};
  const ReorderPlan plan({32, image, row_major(image), feature_blocks(image, 16)});
  CHECK(reach_of(plan.programs().front()->tiling()) == 16 * 64);
}

// Rows and columns have no guard in common: what it leaves of a tile would be no rectangle.
void test_guards_are_apart() {
  std::mt19937_64 random(20261128);
  RandomLayout layouts(random);
  int guarded = 0;
  for (int i = 0; i < 3000; ++i) {
    const ReorderDescription description = random_description(layouts, i);
    const ReorderPlan plan(description);
    for (const auto& program : plan.programs()) {
      const Tiling& tiling = program->tiling();
      for (const TileLoop& row : tiling.rows) {
        guarded += row.variable != kNone;
        for (const TileLoop& column : tiling.columns)
          CHECK_IN(describe(description), row.variable == kNone || row.variable != column.variable);
      }
    }
  }
  CHECK(guarded > 500);
}

}  // namespace
}  // namespace tilework::test

int main() {
  tilework::test::test_tilings();
  tilework::test::test_reach();
  tilework::test::test_guards_are_apart();
  return tilework::test::result();
}
