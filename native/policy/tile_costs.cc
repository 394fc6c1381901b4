#include "policy/tile_costs.h"

#include <algorithm>

#include "cpu/cache.h"
#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/plan/tiling.h"

namespace tilework {
namespace {

// Thresholds that are lines of a cache, or parts of one.
static_assert(kTileEdgeBytes.value == kLineBytes && kCastEdgeBytes.value == 4 * kLineBytes);
static_assert(kHalfLineBytes.value == kLineBytes / 2 && kShortColumnBytes.value == 2 * kLineBytes);

// What the register blocks of the leaves cost, in instructions, and a unit that is moved by itself.
struct BlockCost {
  int64_t row_bytes;
  int64_t column_bytes;
  double instructions;
};
constexpr BlockCost kBlockCosts[] = {{32, 16, 100}, {16, 32, 90}, {8, 32, 60}, {32, 8, 60}};
constexpr double kInstructionsByUnit = 3;

int64_t bytes_of(const std::vector<TileLoop>& list, int64_t unit) {
  for (const TileLoop& loop : list) unit *= loop.count;
  return unit;
}

}  // namespace

double instructions_per_byte(const Tiling& tiling) {
  const int64_t rows = bytes_of(tiling.rows, tiling.unit_bytes);
  const int64_t columns = bytes_of(tiling.columns, tiling.unit_bytes);
  // In double: both are a unit of any size where the unit is copied, and products of two of them overflow.
  const auto unit = static_cast<double>(tiling.unit_bytes);
  const auto units =
      static_cast<double>(rows / tiling.unit_bytes) * static_cast<double>(columns / tiling.unit_bytes);
  double best = kInstructionsByUnit * units;
  for (const BlockCost& block : kBlockCosts) {
    if (rows < block.row_bytes || columns < block.column_bytes) continue;
    const double blocks = static_cast<double>(ceil_div(rows, block.row_bytes)) *
                          static_cast<double>(ceil_div(columns, block.column_bytes));
    best = std::min(best, blocks * block.instructions / unit);
  }
  return best / (units * unit);
}

}  // namespace tilework
