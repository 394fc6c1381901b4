// Ranges of blocks against a plain loop: random rows and blocks, windows that end anywhere, NaN and
// infinities.
#include "dtype/block_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "guarded_memory.h"
#include "io/checked_math.h"

namespace tilework::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Ranges {
  std::vector<float> min;
  std::vector<float> max;
  explicit Ranges(int64_t blocks)
      : min(static_cast<size_t>(blocks), kInfinity), max(static_cast<size_t>(blocks), -kInfinity) {}
  bool operator==(const Ranges&) const = default;
};

Ranges ranges_by_loop(int64_t rows, const RowBlocks& blocks, const std::vector<float>& numbers) {
  const int64_t in_row = ceil_div(blocks.row_length, blocks.block_length);
  Ranges ranges(rows * in_row);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < blocks.row_length; ++i) {
      const float value = numbers[static_cast<size_t>(row * blocks.row_length + i)];
      const auto block = static_cast<size_t>(row * in_row + i / blocks.block_length);
      if (std::isnan(value)) continue;
      ranges.min[block] = std::min(ranges.min[block], value);
      ranges.max[block] = std::max(ranges.max[block], value);
    }
  }
  return ranges;
}

void test_blocks() {
  std::mt19937_64 random(1920);
  const auto below = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  std::normal_distribution<float> normal;
  constexpr int64_t kMost = 4000;
  const GuardedMemory memory(kMost * 4);
  for (int round = 0; round < 3000; ++round) {
    const RowBlocks blocks{1 + below(200), 1 + below(round % 2 == 0 ? 40 : 300)};
    const int64_t rows = 1 + below(20);
    std::vector<float> numbers(static_cast<size_t>(rows * blocks.row_length));
    for (float& number : numbers) {
      const int64_t kind = below(round % 3 == 0 ? 10 : 1000);
      number = kind == 0   ? std::nanf("")
               : kind == 1 ? (below(2) == 0 ? kInfinity : -kInfinity)
                           : normal(random);
    }
    Ranges found(rows * ceil_div(blocks.row_length, blocks.block_length));
    const auto total = static_cast<int64_t>(numbers.size());
    for (int64_t first = 0; first < total;) {
      const int64_t count = std::min(total - first, 1 + below(round % 5 == 0 ? 50 : kMost));
      auto* window = reinterpret_cast<float*>(memory.place(count * 4, Against::kUpper));
      std::copy_n(numbers.begin() + first, count, window);
      extend_block_ranges(blocks, first, window, count, {found.min.data(), found.max.data()});
      first += count;
    }
    CHECK_IN(
        "rows of " + std::to_string(blocks.row_length) + ", blocks of " + std::to_string(blocks.block_length),
        found == ranges_by_loop(rows, blocks, numbers));
  }
}

}  // namespace
}  // namespace tilework::test

int main() {
  tilework::test::test_blocks();
  return tilework::test::result();
}
